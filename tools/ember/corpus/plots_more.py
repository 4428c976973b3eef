# ruff: noqa: E501 - lines of text read better whole
"""More plots: school and farm, woods and wonders (see plots_home for the form)."""

from __future__ import annotations

PLOTS: list[tuple[str, str, list[str], str]] = [
    (
        "garden_giant",
        "any",
        ["a giant pumpkin", "growing a pumpkin", "the pumpkin contest"],
        """
<open>
<trait_line>
Every autumn, {the people of $town|all of $town} held a contest for the biggest pumpkin. {This year $H wanted to win.|"This year I will grow the biggest of all," said $H.}

In spring $he {planted a single seed|put one fat seed into the ground}. $^he {watered it every morning|gave it the best place in the sun} and {told it stories|pulled out every weed}. {The pumpkin grew as big as a ball, then as big as a wheel, then as big as a cart.|It grew, and it grew, until it was bigger than $H.}
<friend_line>
"{How will you carry it to the market|How will you move it}?" asked $F.
$H {stopped smiling|scratched $his head}. {$^he had never thought of that.|That was a question $he had forgotten to ask.}
{They pushed. They pulled. The pumpkin did not move.|They pushed it from one side and pulled it from the other, but it stayed where it was.}
<worry>

"{If the pumpkin cannot go to the contest, the contest must come to the pumpkin|Then let everyone come here},\" said $F{ suddenly|}.
So $H {ran from door to door|went to every house}, {and that evening the whole town stood in the garden|and by evening they were all there}. $E {walked around the pumpkin three times|measured it with a long rope}. "{This is the biggest pumpkin I have ever seen|I have no rope long enough for it},\" $ehe said.
<joy>
"{And what will you do with it now|What is the prize for}?" asked the others.
"{Soup|We will make soup},\" said $H, "{for everyone|for all of you}!"
{They cooked all night in every pot they could find.|There was soup for three days, and nobody went home hungry.}
?The {empty shell became a playhouse|shell was so big that the children used it as a house}.
<moral_kind>
<end>
""",
    ),
    (
        "echo",
        "any",
        ["an echo in the mountains", "a voice in the valley", "a lonely $kind"],
        """
<open>
$^he was {often|sometimes} {lonely|alone}, for {there was nobody to play with|the others lived far away}.

One day $he climbed {the mountain|up to the high rocks} and {shouted|called}, "Hello! Is anybody there?" {And far away a voice called back the very same words.|From the other side, a voice said just the same.}
"Who are you?" {called|shouted} $H. "Who are you?" {answered the voice|came the answer}.
"You are rude!" cried $H{ angrily|}. "You are rude!" {said|cried} the voice, {just as angrily|every bit as loud}.
$H {went home in a bad mood|stamped $his foot and went home}. "{There is somebody in the mountains who does not like me|Somebody up there keeps making fun of me},\" $he told $E.

$E {smiled|laughed softly}. "{Go back tomorrow|Try again},\" $ehe said, "{and say something kind|but this time, say something friendly}. {Then see what happens|You will be surprised}."
So the next {day|morning}, $H climbed up again.
<weather>
<courage>
"You are my friend!" $he called. "You are my friend!" {answered|said} the voice, {warm and clear|and it sounded glad}.
<joy>
{Then $he heard someone laugh, quite close by.|Just then, somebody laughed behind a rock.} It was $Fdesc. "{That is only the echo|You are talking to the mountain},\" said the {newcomer|other}. "{I do that too, when I am alone|It gives back what you give it}. {My name is $F|I am $F}."
"{I am $H|My name is $H},\" said $H. {And so there were two voices in the mountains, and later four.|So they called together, and the mountain answered them both.}
From then on {they met up there every day|$H was not lonely anymore}. {What you call into the world comes back to you, as $E likes to say.|"The world is like an echo," $E likes to say. "It answers as you call."}
<end>
""",
    ),
    (
        "train_night",
        "any",
        ["a train", "a journey by train", "getting lost"],
        """
<open>
<trait_line>
One {evening|day}, $H {was allowed to|was to} travel all alone for the first time, by train, to {visit|stay with} $E in $town2. {"Get off at the fourth stop," they had told $him.|"The fourth station, do not forget," everyone had said.}

The train {rattled|rolled} past $outside and through $landmark. <weather>
Across from $him sat $Fdesc with a big {bag|basket}. "{I am $F|My name is $F},\" $fhe said. "{Do you like riddles|Shall we play a game}?" {They guessed riddles and laughed, and the time flew by.|They played and talked, and forgot everything around them.}
When the train stopped, $H {looked out|jumped up}. "{Which station is this|Where are we}?" {It was dark, and the sign said a name $he did not know.|"The sixth," said $F. "I am getting off here."}
<worry>
"{I should have left two stops ago|I have missed my stop},\" {whispered|said} $H.

{Some would have cried. $H nearly did.|A tear ran down $his nose.} But $F {picked up $fhis bag|put down $fhis bag} and said, "{This is my fault as well as yours|I kept you talking}. {We will go and ask|Come, we will find someone who can help}."
<courage>
At the end of the platform burned a {lamp|light}, and there sat the {old station master|man with the red cap}. {He looked at his big book.|He ran his finger down a long list.} "{In ten minutes there is a train back|The last train back leaves in ten minutes},\" he said. "{I will tell the driver to look after you|Sit in the front, and count to two}."
{So they waited together, under the lamp, and shared $food.|$F stayed until the train came, and they shared $food.}
"{One|That is one},\" $H counted aloud at the next station, and at the one after that: "Two!"
On the platform stood $E with a lantern. "{I knew you would come|There you are},\" $ehe said and {held $him tight|laughed with relief}.
$H told $ehim everything{, from the riddles to the man with the red cap|}. {Later a letter came, and in it was a new riddle from $F.|The next week, $F sent $him a letter full of riddles.}
<moral_courage>
<end>
""",
    ),
    (
        "shadow",
        "any",
        ["a shadow", "a quarrel with a shadow", "being yourself"],
        """
<open>
One {bright|sunny} day, $H {looked at|noticed} $his shadow. "{Why do you always do what I do|You are nothing but a copy},\" $he said. "{Can you not do something by yourself|I am tired of you}!"
{And because it was a day on which strange things happen, the shadow stood up.|To $his great surprise, the shadow answered.} "{Very well|As you like},\" it said. "{From now on I will go my own way|I will go for a walk, then}." And it {walked away across the meadow|ran off past $outside}.

{At first $H was glad.|"Good," said $H.} But {soon|before long} $he {felt strange|felt that something was missing}. {The others stared at $him and whispered.|When the others played in the sun, they looked at the ground behind $him and went away.} "{You have no shadow|Where is your shadow},\" said $F. "{It looks as if you were not quite here|That is a bit scary}."
<worry>
"{I sent it away|We had a quarrel},\" said $H. "{Will you help me find it|Please help me look for it}?"
"{Of course|Let us go},\" said $F. "{A shadow cannot be far|Shadows like the light. It must be somewhere bright}."

<road>
They looked {under the trees, but there were too many other shadows|behind every stone}. {At last they saw it, sitting all alone on a wall.|In the evening, they found it on a white wall, all by itself.} It was {very thin|pale and long}.
"{I wanted to do great things|I thought I would have adventures},\" said the shadow{ softly|}, "but {without you I do not know what I am|I cannot even hold a cup}."
"{And without you I feel only half|I miss you too},\" said $H. "{I am sorry|I was unkind}. {Come back, and you may choose the games sometimes|Please come home with me}."
{The shadow jumped down and lay at $his feet, where it belonged.|Then the shadow slipped back to its old place, and it fit perfectly.}
<joy>
{Since then, $H waves at $his shadow every morning, and sometimes, when nobody looks, it waves first.|If you look closely, you can see that sometimes the shadow moves first.}
<end>
""",
    ),
    (
        "library",
        "any",
        ["a magic book", "an empty book", "the old library"],
        """
<open>
<trait_line>
In $town there was {an old library|a library with ten thousand books}, and its keeper was $E. {$H went there every rainy day.|Whenever it rained, $H went there.}

One afternoon, {high up on a dusty shelf|behind a row of heavy books}, $H found a {small|thin} $color book. {$^he opened it, and all its pages were empty.|There was not a single word in it.}
"{This book is broken|Someone forgot to write it},\" said $H.
"{That one|Oh, that book},\" said $E{ with a smile|}. "{It is not broken. It is waiting|It writes itself, but only when something real happens}. {Take it with you|You may borrow it}."

So $H {put the book in $his bag|carried the book home}. {The next morning the first page was still empty.|That evening $he looked again. Nothing.} {$^he sat at home and waited. The book stayed empty.|$^he waited a whole day by the fire, and nothing happened.}
"{Maybe nothing happens to me|Perhaps my days are too boring},\" $he told $F.
"{Then let us go out and make something happen|Come on, then},\" said $F.
<weather>
They {helped an old man carry his wood|pulled a sheep out of the mud}, they {built a dam in the stream|climbed up to $landmark}, and they {got wet to the skin|lost their way and found it again}. {They laughed so much that they had to sit down.|When they came home, they were dirty, tired and happy.}
That evening $H opened the book, {and $his hands shook|and there it was}. {Page after page was full, in small neat letters.|The first pages were full of words.} {It was all there: the mud, the water and the laughing.|Everything they had done was written there, and even what they had said.}
<joy>
"{So that is how it works|Now I understand},\" said $H. "{A story does not come to you. You have to go out and meet it|You cannot wait for a story. You must begin one}."
{When the book was full, $he brought it back to $E, who put it on the shelf with the others.|Today the book stands in the library, next to all the others, and you may be reading from it now.}
<end>
""",
    ),
    (
        "fishing",
        "any",
        ["a big fish", "fishing at the lake", "a fish story"],
        """
<open>
<friend_line>
One {quiet|early} morning the two went fishing {at the lake|near $outside}. <weather>
They {sat|waited} for an hour, and another hour. {"I do not think there are any fish here," said $F.|"Maybe the fish are asleep," said $F.}

Then the line {jerked|went tight}! "{I have one|A fish},\" cried $H. {$^he pulled, and the fish pulled back.|The rod bent like a bow.} "{Help me|Hold on to me}!" $F {grabbed $him around the middle|held $him by the coat}, and they pulled together{, one, two, three|}.
{Splash! They fell over backward, and a huge old fish lay in the grass.|Out of the water came the biggest fish they had ever seen.} {It was as long as $H was tall, and it had a silver beard.|It was green with age, with seven old hooks in its lip.}
"{We will be famous|Nobody will believe it},\" said $F. "{$E must see this|We could eat it for a week}!"
But $H {looked at the fish|had become quiet}. {It opened and closed its mouth and looked at $him with one round eye.|Its sides went up and down, and it looked very tired.}
<worry>
"{How old do you think it is|It must be the oldest fish in the lake},\" said $H. "{It was here before us|It was swimming here when $E was small}. {I do not want to eat somebody that old|I think it should stay here}."

$F {sighed|thought about it}, and then $fhe nodded. {Carefully they took out the hook, and all the old hooks too.|First they pulled out the seven old hooks, one by one.} They {carried|slid} the fish back into the water. {It lay still for a moment, then it beat its tail once and was gone.|With one stroke of its tail, it was gone.}
At home $E asked, "{And? What did you catch|Did you catch anything}?"
"{Nothing that we could carry|The biggest fish in the world},\" said $H, "{but we gave it back|and we let it go}." {$E looked at them for a long time. "The one with the beard?" $ehe asked softly. "I let it go too, once."|"Then you have caught something better," said $E.}
<moral_kind>
<end>
""",
    ),
    (
        "painter_rain",
        "any",
        ["the color of rain", "painting a picture", "a rainbow"],
        """
<open>
$^he had a little box of paints and {painted everything $he saw|painted from morning to evening}. But one color was missing. {In the whole box there was no blue.|The blue was used up.}
"{Without blue I cannot paint the sky|I cannot paint the sea without blue},\" said $H.

<friend_line>
"{Then we must look for blue|Let us find some},\" said $F. "{The world is full of it|There is blue all over the place}."
So they {set out|took a jar and went out}. {They tried to catch the sky in the jar, but when they closed the lid, it was empty.|First they filled the jar with water from the lake, but in the jar it had no color at all.} {They picked a bluebell, but by noon it was brown.|They picked blueberries, but the juice was purple.} {They asked the blue bird for a feather, but the bird needed them all.|They asked the kingfisher, but he was in a hurry.}
<worry>
Then it {began to rain|started to rain}, and they {hid under $outside2|crept under a tree}.
"{I give up|It is no use},\" said $H. "{Blue cannot be caught|Nobody can hold blue}."
{$F did not answer.|"Look," said $F.} $^fhe pointed up. {The sun had come out while it was still raining, and over $landmark stood a rainbow.|Across the whole sky, from $landmark to the lake, there was a rainbow.} {Red, yellow, green and, on the inside, the finest blue.|All the colors were in it.}
{$H looked and looked until it faded.|"I must remember it exactly," whispered $H.}

At home $he {painted|sat down and painted} {the picture without any blue|what $he had seen}. {Where the blue should be, $he left the paper white.|$^he left a white place where the blue belonged.} And a strange thing happened: {everyone who looked at it saw the blue|all who came to see it said, "What a beautiful blue!"}.
"{How did you do that|Where did you find it}?" asked $E. $H {smiled|laughed}. "{You brought it with you|It is in your own eyes},\" $he said.
?The next day there was a {small packet|little box} at the door, and in it was a tube of blue, with a card from $F.
<moral_patience>
<end>
""",
    ),
    (
        "wolf_cry",
        "any",
        ["a false alarm", "playing tricks", "crying for help"],
        """
<open>
$^he liked to play tricks{ on everyone|}, and {it was not always funny|$he laughed the loudest}.
One {quiet|boring} afternoon $H {shouted|cried}, "{Fire|Help}! {There is a fire|Come quickly}!" {Everyone came running with buckets.|They all dropped their work and came.} {But there was nothing at all, and $H held $his sides with laughter.|"I fooled you!" laughed $H.}
"{That was not funny|Do not do that again},\" said $F{, out of breath|}.

The next week, $he did it again. {Fewer of them came this time, and nobody laughed.|Only half of them came, and they went home angry.}
"{Words are like coins|Listen to me},\" said $E. "{If you spend them on lies, you will have none left when you need them|One day you will really need help, and then nobody will believe you}." {But $H only shrugged.|$H was not listening.}

Then, one {windy|stormy} evening, {it really happened|something terrible happened}. $H was crossing the old bridge near $outside when a board broke. {$^he hung on with both hands.|Now $he was holding on with the tips of $his fingers.}
"{Help|Please, help me}!" $he {cried|shouted}. "{This time it is true|It is not a trick}!"
{In the houses they heard it and shook their heads.|"There $he goes again," said the others and closed the windows.}
<worry>
Only $F stopped {and listened|at the door}. {"There is something different in that voice," $fhe thought.|"And what if it is true this time?" $fhe said.} $^fhe {took a rope|grabbed a rope} and ran out into the dark.
{It was just in time.|$^fhe came at the very last moment.} $F threw the rope, and $H {caught it|held on}, and {step by step $fhe pulled $him back to firm ground|soon $he was safe}.

{For a long time neither of them said a word.|They sat on the ground and breathed.} "{Why did you come|You came, after everything I did}?" asked $H{ at last|}. "{I thought that nobody would believe me|After all my tricks}."
"{Better fooled three times than too late once|I would rather be fooled again than be too late},\" said $F.
The next day, $H {went from house to house|stood up before all of them} and said that $he was sorry.
<moral_honest>
<end>
""",
    ),
]
