# ruff: noqa: E501 - lines of text read better whole
"""Sentences that every plot may use: openings, weather, roads, meals, thanks, nights and endings.

Variables: H the hero ($he $him $his $himself), F the friend ($fhe $fhim $fhis), E the elder ($ehe $ehim $ehis),
kind and trait of the hero, home, town, season, and the things the plot has drawn.
"""

from __future__ import annotations

RULES: dict[str, list[str]] = {
    "open": [
        "Once upon a time, there was a {little|young|small} $kind named $H.",
        "Once upon a time, there was a $trait {little |young |}$kind {named|called} $H.",
        "Once upon a time, in {a place called $town|a quiet valley|a land of green hills}, there lived a $trait $kind named $H.",
        "Once upon a time, a {little|young} $kind named $H lived in $home.",
        "{Long ago|A long time ago|Many years ago}, a $trait $kind named $H lived in $home.",
        "There once was a {little|young} $kind {named|called} $H who lived in $home.",
        "In {$town|a small village|a quiet corner of the world}, there was a $trait $kind named $H.",
        "$H was a $trait {little |young |}$kind who lived in $home.",
        "One {fine|bright|cool|lovely} $season {morning|day}, a $trait $kind named $H woke up early.",
        "Not far from $landmark, in $home, lived a $kind named $H.",
        "This is the story of $H, a $trait {little |young |}$kind from $town.",
        "Everyone in $town knew $H, the $trait {little |young |}$kind.",
        "One day, a $trait {little |young |}$kind {named|called} $H {went for a walk|sat by the window|was looking for something to do}.",
        "One {sunny|windy|rainy|quiet} {morning|afternoon} in $town, $H, a {little|young} $kind, {came out of the house|opened the door|looked up at the sky}.",
        "There was once a $trait $kind whose name was $H.",
        "In {the old days|the days of our grandparents}, when {the forests were deep|the roads were long}, there lived a $kind named $H.",
        "It was {$season|a day in $season}, and $H, a {little|young} $kind, was {wide awake|already up}.",
        "$H the $kind lived in $home.",
        "Have you heard of $H? $^he was a $trait {little |young |}$kind from $town.",
        "{Far, far away|Far away, beyond $landmark}, there lived a $trait {little |young |}$kind {named|called} $H.",
        "A {little|young|$trait} $kind named $H lived in $home.",
        "It was a {dark|stormy|cold} {evening|night}, but in $home, where a $kind named $H lived, a light was burning.",
        "The {little|young|$trait} $kind {named|called} $H lived in $home.",
        "Once there was a {little|young|$trait} $kind {named|called} $H, who lived near $landmark.",
    ],
    "trait_line": [
        "$^he loved $hobby {more than anything|every day|whenever $he could|best of all}.",
        "{Most of all, |}$he {liked|loved} $hobby, and $he was {good at it|never bored|always smiling}.",
        "$^his favorite thing was $hobby.",
        "When the day's work was done, $he spent the time $hobby.",
        "$^he was {known for being|always} $trait, and people {liked|loved} $him for it.",
        "Every {morning|evening}, $he sat {outside|by the door} and {dreamed of|thought about} far places.",
        "$^he had a {big heart|quick mind|warm smile} and {a hundred questions|a new idea every day}.",
    ],
    "friend_line": [
        "$^his best friend was $Fdesc named $F.",
        "$^he had a good friend, $Fdesc named $F.",
        "$F, $Fdesc, {lived nearby and came to play|was $his best friend}.",
        "Next to $him lived $Fdesc named $F, and the two were always together.",
    ],
    "weather": [
        "The sun was {shining|warm and bright}, and the air smelled of {flowers|fresh grass|rain and leaves}.",
        "It was a {cool|gray|quiet} {morning|day}, and {mist hung over the fields|the wind moved softly in the trees}.",
        "White clouds {sailed|drifted} {slowly |}across the sky.",
        "A light {rain|wind} had {come and gone|passed in the night}, and {every leaf was shining|the path was soft}.",
        "The birds were {singing|busy}, and the whole world {seemed|felt} {new|awake|full of light}.",
        "A {soft|gentle|light} breeze {carried the smell of $fruit|made the grass dance|played with the leaves}.",
    ],
    "road": [
        "The path {led|went|wound} past $outside2 and {up|over|around} a {small|steep|green} hill.",
        "They {walked|went} {past|as far as} $outside2, {talking and laughing|singing as they went|side by side}.",
        "It was a long way, but {the company was good|they did not hurry|neither of them complained}.",
        "On the way they {stopped to rest|shared some $fruit|counted the birds} {by|near} $outside2.",
    ],
    "road_alone": [
        "The path {led|went|wound} past $outside2 and {up|over|around} a {small|steep|green} hill.",
        "$H walked {past|as far as} $outside2 and {did not look back|kept a steady pace|hummed a tune}.",
        "It was a long way, but $he {kept going|did not give up|took one step after another}.",
        "On the way $he {stopped to rest|ate some $fruit|looked at the clouds} {by|near} $outside2.",
    ],
    "worry": [
        "$^his heart {beat fast|sank|felt heavy}.",
        "$H {felt a lump in $his throat|did not know what to do|bit $his lip}.",
        "For a moment, $he {wanted to cry|stood very still|could not say a word}.",
        "$H {swallowed hard|took a deep breath|closed $his eyes for a moment}.",
    ],
    "courage": [
        '$H took a deep breath. "{I can do this|One step at a time|I have to try}," $he {said|whispered}.',
        '"{If I do not try, I will never know|Being brave means trying anyway|I will not give up now}," $he told $himself.',
        "$^his {knees shook|heart pounded}, but $he {went on|did not turn back}.",
        "{Slowly|Carefully}, $he {took one step, and then another|lifted $his chin and went on}.",
    ],
    "encourage": [
        '"Do not {worry|be sad|give up}," said $F. "{We will do it together|I will help you|Two heads are better than one}."',
        '$F {smiled|nodded}. "{You are not alone|I am right here|I believe in you}," $fhe said.',
        '"{Come on|Listen}," said $F, "{we can fix this|there is always a way|we only have to think}."',
    ],
    "wise": [
        '"{You have a good heart|I always knew that you had it in you|That was well done}," said $E {softly|kindly|with a smile}.',
        '$E {nodded|smiled}. "{You have done well|I am proud of you|That was a good thing to do}," $ehe said.',
        '"{Remember this day|Do not forget this}," said $E. "{It shows what a friend can do|You were braver than you knew|Small hands can do great things}."',
    ],
    "joy": [
        "$H {laughed out loud|jumped for joy|could not stop smiling|clapped and cheered}.",
        "$H had never been so {happy|proud|glad} in $his life.",
        "$^his {eyes were shining|face lit up|heart felt light}.",
        "It was the {best|happiest|finest} {moment|feeling} $H had ever known.",
    ],
    "hug": [
        "$F gave $him a {big |warm |}hug.",
        "The two friends {hugged|danced around|laughed together} until they were {tired|out of breath}.",
        '"Thank you, $F," said $H. "{You are the best friend in the world|I could not have done it without you}."',
        '"Thank you," said $H. "{That is what friends are for|Any time}," said $F, and {they both laughed|$fhe meant it}.',
    ],
    "meal": [
        "{That evening|Later|When they came home}, they ate $food, and {everything tasted better than ever|nothing was left over}.",
        "$E {brought out|had made} $food, and everyone {had a piece|ate until the plates were clean|asked for more}.",
        "They sat down {together|in the warm kitchen|under the stars} and shared $food.",
    ],
    "night": [
        "That night, $H {fell asleep with a smile|slept better than ever|dreamed of {green hills|bright stars|the day to come}}.",
        "When the {moon|stars} came {up|out}, $H {lay in bed|curled up} and thought about {the day|everything that had happened}.",
        "The {moon|night} was {quiet|clear}, and $H {soon fell asleep|closed $his eyes, warm and {happy|content}}.",
    ],
    "close": [
        "From that day on, $H {was never quite the same|knew that $he could do it|felt a little taller}.",
        "And {whenever|each time} $he {passed $outside|told the story|thought of that day}, $he smiled.",
        "And {so|that is how} $H learned {something that $he never forgot|a lesson for life}.",
        "And they {all |}lived happily {ever after|for many years}.",
        "And if you ever visit $town, {you may hear someone tell this story|someone may still tell you about it}.",
        "It had been a {good|wonderful|very good} day.",
    ],
    "moral_friend": [
        "$H had learned that {a good friend makes hard things easy|help is never far away when you have a friend|two friends can do more than one}.",
        '"{Together we can do anything|A friend is better than any treasure}," $H said, and $F agreed.',
        "After that, $H and $F were {closer than ever|the best of friends|never apart for long}.",
    ],
    "moral_courage": [
        "$H had learned that {being brave does not mean having no fear|courage can be very quiet|even small feet can take big steps}.",
        "After that, $H was {not so easily afraid|ready for the next adventure|known as the bravest $kind in $town}.",
        '"I was afraid," $H said later, "but {I did it anyway|I am glad I tried}."',
    ],
    "moral_honest": [
        "$H had learned that {the truth is lighter than a lie|it is better to tell the truth at once|an honest word can mend a lot}.",
        "After that, $H always told the truth, even when it was {hard|not easy}.",
        '"The truth was hard to say," $H thought, "but {now I feel much better|it was worth it}."',
    ],
    "moral_patience": [
        "$H had learned that {good things take time|hard work pays off|practice is better than luck}.",
        "After that, whenever something was {hard|difficult}, $H {remembered that day|took a deep breath and tried again}.",
        '"Little by little," $H liked to say, "{even a mountain can be climbed|a seed becomes a tree}."',
    ],
    "moral_kind": [
        "$H had learned that {a small kindness can go a long way|kindness always comes back|giving feels better than getting}.",
        "After that, $H never passed anyone who needed help.",
        '"{It costs nothing to be kind|One good turn deserves another}," $H said with a smile.',
    ],
    "end": ["", "", "The end.", "And that is the end of the story."],
}
