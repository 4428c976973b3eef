# ruff: noqa: E501 - lines of text read better whole
"""Plots of the woods, the sea and the sky: journeys, rescues, riddles and a little magic (see plots_home)."""

from __future__ import annotations

PLOTS: list[tuple[str, str, list[str], str]] = [
    (
        "storm_rescue",
        "any",
        ["a storm", "saving $creature", "helping a lost animal"],
        """
<open>
<trait_line>
One {afternoon|day} in $season, {dark clouds came over|the sky turned black above} $landmark. "{A storm is coming|Come inside soon},\" called $E.
$H was {just closing the shutters|already at the door} when $he heard a {thin|small} cry. {It came from the direction of $outside.|Somewhere out there, someone was calling for help.}
<worry>
The thunder rolled, and the first {big |}drops fell. <courage>

$H {ran out|ran} through the rain, past $outside. {The wind pulled at $him, and the path turned to mud.|The rain was so thick that $he could hardly see.} The cry came again, {closer now|louder this time}.
There, under {a fallen branch|a bush}, was $creature, {soaked and shaking|cold and trembling}. {One foot was stuck.|It could not get out.}
"{Do not be afraid|Hush, little one},\" said $H {softly|in a low voice}. "{I will get you out|I am here now}."
$^he {lifted|pushed} the branch with all $his strength, {once, twice, three times|again and again}, until it moved. Then $he {wrapped the little one in $his scarf|held the little one close} and ran home{ as fast as $he could|}.

{By the fire|In the warm room}, $E {brought a dry towel|had already put a blanket by the fire} and some warm milk. {Soon the shaking stopped.|The little animal drank it all and fell asleep.}
{"You ran out into a storm for a stranger," said $E, "and I am very proud of you."|"That was dangerous," said $E, "but it was also very brave."}
The next morning the {sky was blue|storm was over}. $H {carried|took} the little one back{ to where $he had found it|}. {Its mother was already there, searching and calling.|And who was waiting there? Its mother.}
{The mother touched $his hand with her nose, as if to say thank you.|They {looked back once|turned around once more}, and then they were gone.}
<moral_kind>
<night>
<end>
""",
    ),
    (
        "map",
        "any",
        ["a treasure map", "finding a treasure", "an old map"],
        """
<open>
<trait_line>
One rainy day, $H found an old {map|piece of paper with a map on it} {in a trunk in the attic|behind a loose board|inside a dusty book}. It showed $landmark, $outside and a {big |}red cross.
"{A treasure map|Look what I have found}!\" {whispered|said} $H and ran to $F. "{Come with me|We have to find it}!"
"{Of course|I would not miss it},\" said $F. "{I will bring the spade|I will pack some $food}."

{At dawn|Early the next morning} they set out.
<weather>
<road>
At $outside they found {a stone with words on it|words cut into the bark of a tree}. {"Read it," said $F.|$H read it aloud.} It said: "I have a bed but never sleep, I have a mouth but never speak, I run all day but have no feet. {Go where I go|Follow me}."
They thought {and thought|for a long time}. "{A bed, a mouth|Runs without feet|Hmm},\" said $F. "{Who could that be|What can it mean}?"
"{The river|A river},\" {cried|said} $H {suddenly|all at once}. "{It must be the river|That is the answer}!"

So they followed the river until they {reached|came to} $landmark. {There stood three tall stones, and between them was a cross of red pebbles.|There, on the ground, lay a cross of red stones.}
They dug {and dug|until their arms hurt}. {Clunk!|At last the spade hit something hard.} It was a {small iron box|wooden chest}. {The lock was rusty and fell off.|The lid opened with a long creak.}
Inside lay {no gold at all|neither gold nor silver}, but a {letter|note} and two {wooden cups|little flutes|tin whistles}. The note said: "{The treasure is the one who came with you|You have already found the best treasure: a friend to look for it with}."
They {looked at each other|were quiet for a moment}, and then they {laughed|smiled}. {"It is true," said $F.|"Whoever wrote this was right," said $H.}
<meal>
{They put a new note in the box and buried it again, for the next ones who would come.|$H hung the map over $his bed, and $F kept the note.}
<moral_friend>
<end>
""",
    ),
    (
        "dragon",
        "dragon",
        ["a little dragon", "a dragon who could not breathe fire", "a friendly dragon"],
        """
<open>
All the other dragons could breathe fire, but $H could not. {When $he tried, only a puff of smoke came out.|All that ever came out was a small gray cloud.}
The others {laughed|teased $him}. "{Here comes the teapot|Careful, it smokes},\" they {called|said}.
<worry>

{So one day|One sad evening} $H {left the mountain|flew away} and {came to|landed near} $town. {The people screamed and shut their doors.|"A dragon!" the people cried, and they ran.} Only {a child|one child} named $F {stayed|did not run}.
"{Are you going to burn down our houses|Will you eat us}?" asked $F.
"{I cannot even light a candle|I could not if I wanted to},\" said $H {sadly|and hung $his head}. "{I only make smoke|Look}." And out came {a puff of smoke|a little cloud} in the shape of a {ring|heart}.
$F {clapped|laughed}. "{That is wonderful|I have never seen anything so pretty}! {Can you do it again|Do another one}!"

From that day, the two were {friends|always together}. $H made {clouds in all shapes|rings and hearts and ships of smoke}, and {soon all the children came to watch|the people were no longer afraid}.
Then, one night in autumn, {a thick fog came in from the sea|the fishing boats were late, and the sea was black}. {"The boats will hit the rocks!" cried $E.|"How will they find the harbor?" asked $E.}
"{If only there were a light|The lamp of the lighthouse is broken},\" said $F. "{$H, please try|Please try once more}."
<courage>
$^he thought of {$his friend|$F} and of the people in the boats. $^he {breathed in as deeply as $he could|filled $his chest}, {warmer and warmer|and something grew warm inside $him}. {And then a great golden flame shot up into the sky.|And then there was fire, tall and bright as a tower.}
{One after another, the boats came home.|All the boats turned and followed the light into the harbor.}
<joy>
"{You see|I knew it},\" said $F. "{You did not need fire to be special|Your fire was only waiting for a good reason}. {But it is a very good fire|And I like the smoke rings just as much}."
<wise>
{Since then, $town has had a dragon in its lighthouse.|They gave $him a place to live in the lighthouse, and there $he lives today.}
<moral_courage>
<end>
""",
    ),
    (
        "robot",
        "robot",
        ["a little robot", "a robot who wanted to paint", "a robot with a dream"],
        """
<open>
$^his job was to {carry boxes|count screws} in a big {factory|hall}, {from morning to night|day after day}. {Everything there was gray: the walls, the floor and the boxes.|It was a gray place, and nobody ever sang there.}
But $H had a dream. $^he wanted to {paint|paint pictures}. {"Robots do not paint," said the big machines.|"What for?" asked the other robots. "Paint does not move boxes."}

One {evening|day}, $H found {a box of colors|an old box of paints} {in the trash|behind the factory}. $^his {lights blinked with joy|antenna trembled}.
$^he painted a {small|tiny} $color $flower on the wall{, very carefully|}. {It was a bit crooked, but it was the first color in that place.|Then $he looked at it for a long time.}
In the morning, {the boss|the manager}, $E, saw it. "Who did that?" $ehe {asked|called}. {All the machines stopped.|It became very quiet.}
<worry>
<courage>
"I did,\" said $H. "{I wanted it to be less gray|I thought the wall looked sad}."

$E {walked up to the wall|looked at the flower for a long time}. {Then something strange happened: $ehe smiled.|"When I was small," $ehe said, "I also liked to paint."}
"{There is a lot more wall|This wall is very big},\" said $E{ at last|}. "{You will need more paint|Would you paint the rest of it too}?"
<joy>
{Day by day|From then on, after work}, $H painted: {trees, birds and a yellow sun|the sea, the mountains and a sky full of birds}. A small robot named $F {brought the brushes|held the ladder}. "{Can you teach me|May I do a corner}?" asked $F, and {soon there were two painters|$H gave $fhim a brush}.
People came from {far away|all over $town} to see the factory with the painted walls, and {the big machines hummed while they worked|even the big machines liked to look at it}.
<moral_courage>
<end>
""",
    ),
    (
        "wishes",
        "any",
        ["three wishes", "a magic fish", "wanting too much"],
        """
<open>
<trait_line>
One {morning|day}, $H was {sitting|walking} by the river when $he saw a {silver|golden} fish {caught in an old net|stuck between two stones}.
"{Help me, please|Please let me go},\" said the fish, {for it could talk|in a clear voice}. "{I will give you three wishes|If you free me, you may wish three times}."
$H {cut the net|pulled the net apart} {carefully |}and set the fish free. "{A promise is a promise|Thank you},\" said the fish. "{So think well|Now wish wisely}."

"{I am hungry|I have not had breakfast},\" said $H. "{I wish for|I would like} all the $food in the world!"
{Whoosh!|In a moment} there were mountains of $food, {as high as a house|up to the tops of the trees}. $H ate until $his {stomach|belly} hurt. {Ants came, then flies, and the whole valley was sticky.|There was so much that $he could not find the path home.}
"{This is not good|That was too much},\" said $H. "{For my second wish, I want gold|Then I wish that everything I touch were gold}!" {Everything around $him turned to gold: the grass, the stones and the trees.|At once the grass was gold, and the flowers, and even the apples on the trees.}
{It was bright, but it was cold and hard, and no bird sang.|Gold grass does not smell, and gold apples cannot be eaten.} Then $F came along{ the path|}. "{What happened here|Where did the meadow go}?" asked $F{ sadly|}. "{I wanted to play here with you|I liked it better before}."
<worry>

$H {thought for a long time|sat down on a golden stone and thought}. One wish was left. {$^he could have had a castle. $^he could have had a crown.|$^he could have asked for anything.}
"{I wish that everything were as it was before|Please, make it all the way it was},\" said $H.
{The gold was gone, and the grass was green.|Then the wind smelled of grass again, and the birds sang.}
"{That was the wisest wish of all|Well wished},\" said the fish, and {disappeared|dived down into the deep water}.
$H and $F {lay down in the grass|sat by the river} and shared an apple. {It was only one apple, but it tasted better than all the rest.|It was not much, but it was enough.}
$H had learned that {enough is better than everything|the best things cannot be wished for}.
<end>
""",
    ),
    (
        "boat_fog",
        "any",
        ["a boat in the fog", "the sea", "a little boat and a lighthouse"],
        """
<open>
<friend_line>
{They had a little $color boat|Together they had built a small $color boat}, and they called it the {Sea Star|Brave Duck|Little Wave}.
One {calm|bright} morning they {sailed|rowed} out {to catch some fish|to the small island}.
<weather>

{At noon|In the afternoon} they {turned back|wanted to go home}. But then {fog came over the water|a white fog rose from the sea}, {thicker and thicker|as thick as wool}. {Soon they could not see the shore.|They could not even see the end of the boat.}
"{Which way is home|Where is the land}?" asked $F in a {small|thin} voice.
"{I do not know|I cannot tell},\" said $H. <worry>
"{If we row the wrong way, we will end up on the open sea|Let us not row at all until we know},\" said $F.
<courage>
"{Be quiet for a moment|Let us listen},\" said $H{ at last|}. "{We cannot see, but we can hear|Our eyes are no use, but we have ears}."
They {held their breath|listened}. {Water. Wind. And then, very far away, a bell.|First there was only the slap of the waves. Then, far off, a bell rang.}
"{That is the bell of the lighthouse|It is $E},\" said $H. "{$E rings it when there is fog|$E promised to ring it whenever the fog came}!"

They rowed {a little|ten strokes}, stopped, and listened{ again|}. {A little more to the left. Ten strokes. Listen.|Each time, the bell was a bit louder.}
{At last|After a long time} a {yellow|warm} light {appeared|shone} through the gray, and the boat {touched the sand|bumped against the pier}.
$E stood there with the rope of the bell still in $ehis hand. "{I have rung it for two hours|I would have rung it all night},\" $ehe said and {hugged them both|wrapped them in blankets}.
<meal>
"{How did you find the way|Were you afraid}?" $ehe asked. "{We listened|We were, so we listened},\" said $F{ proudly|}.
<moral_courage>
<end>
""",
    ),
    (
        "snow",
        "any",
        ["a snowy day", "a lost mitten", "winter and snow"],
        """
<open>
<trait_line>
One {winter |}morning, everything was white. {It had snowed all night.|The snow lay on the roofs like sugar.} {"Snow!" cried $H and ran outside.|$H was outside before breakfast.}
<friend_line>
Together they {built a snowman with a carrot nose|slid down the hill} and {threw snowballs until their ears were red|made angels in the snow}.

But when they {came home|were about to go home}, $H {looked at $his hands|stopped}. "{I have lost a mitten|One of my mittens is gone},\" $he said. "{$E made them for me|The $color ones that $E made}!"
They went back along their {own tracks|footprints}. {They looked by the snowman, and they looked on the hill.|They searched behind the snowman and under the fir trees.} {Nothing $color anywhere, only white.|The mitten was nowhere to be seen.}
?<worry>
"{Shh|Wait},\" whispered $F{ suddenly|} {and pointed|and stood still}. Near $outside, {something $color lay in the snow|there was a spot of $color}, and it {moved|was moving}!

They {crept closer|came closer on tiptoe}. It was the mitten, and out of it looked {a tiny mouse|a little wren|a small brown mouse}. {It had made itself a house out of the mitten.|It had crawled inside to keep warm.}
"{That is my mitten|Hello},\" said $H. The little animal {looked at $him with big eyes|shivered}. {Its breath was a tiny cloud.|It was so cold, and it was so small.}
$H {thought about it|looked at $his cold hand}. Then $he {smiled|nodded}. "{Keep it|You need it more than I do},\" $he said. "{I have pockets|My other hand can go in my pocket}."
At home $he told $E what had {happened|become of the mitten}. {$E was not angry at all.|$E listened and said nothing, but $ehis needles began to click.} By {evening|the next day} there was a new mitten on $his {chair|pillow}. {And next to it lay a very, very small one.|And beside it lay a second one, so small that it would fit a mouse.}
<moral_kind>
<end>
""",
    ),
    (
        "night_sound",
        "any",
        ["a strange sound at night", "a mystery in the night", "a secret in the barn"],
        """
<open>
<trait_line>
One night a {strange|odd} sound woke $him. {Hoo-hum, hoo-hum.|Creak, thump. Creak, thump.} {It came from the old barn.|It seemed to come from behind the barn.}
"{What could that be|Who is there so late},\" $he {thought|whispered}. In the morning $he told $F.
"{A ghost, perhaps|Maybe it is a giant},\" said $F. "{Tonight we will find out|Let us keep watch tonight}."

So {that night|when it was dark} they {hid behind a barrel|sat in the straw} with {a lamp under a cloth|a blanket and some $food}. {The hours went by.|The moon rose, and the mice ran about.} {$F was almost asleep.|Their eyes grew heavy.} Then it came again{, louder than before|, very close this time}.
<worry>
<courage>
$H {pulled the cloth from the lamp|lifted the lamp}. {The light fell on a big shadow with wings.|A shadow with wings jumped on the wall.} But {under the shadow|in front of it} there was {no monster|no ghost}, only {a young owl|a small owl} with {one wing caught in a rope|its foot caught in a string}. {Whenever it tried to fly, the old door creaked and thumped.|Each time it flapped, the door moved and creaked.}
"{You poor thing|So it was you},\" said $H. "{Hold the lamp, $F|Keep still, we will help you}." {Carefully they untied the knot.|With careful fingers, $he loosened the rope.}

The owl {shook its feathers|sat still for a moment}, {looked at them|blinked twice} and {flew out into the night|sailed out through the open window}.
"{So much for our ghost|That was no giant},\" said $F {with a laugh|and laughed}. "{I was not afraid at all|I was a little afraid}." "{I was|Me too},\" said $H, "{until I turned on the light|but only until we looked}."
{From then on|Every evening after that}, a soft "hoo" came from {the roof|the big tree}, {and $H always answered it|and $H knew exactly who it was}.
<moral_courage>
<end>
""",
    ),
    (
        "bridge",
        "any",
        ["building a bridge", "a broken bridge", "the river in $season"],
        """
<open>
Between $town and $landmark ran a {wide|wild} river, and {the only bridge was old|there was only one old bridge}. {After a week of rain, the water rose and carried it away.|One night a flood came and took the bridge with it.}
{Now nobody could get to the other side.|Now the two sides were cut off.} $^his friend $F lived over there{, and so did half the school|}.
$H stood on the bank and {waved|called}. {The river was so loud that $F heard nothing.|On the other side, small and far away, $F waved back.}

"{We must build a new one|We need a new bridge},\" said $H. "{You are too small|That is work for big people},\" said the others. "{The river is too strong|It cannot be done}."
<worry>
But {that night|when night came}, $H {could not sleep|had an idea}. {The next morning|At sunrise}, $he {tied a thin string to an arrow|tied a thin string to $his kite} and {let the wind carry it across|sent it over the river}. {$F caught it on the other side.|On the far bank, $F caught the string.}
{To the string $he tied a cord. To the cord $he tied a rope.|With the string they pulled over a cord, and with the cord they pulled over a strong rope.} {Now two ropes hung over the water.|Soon there was one rope, and then there were two.}
"{Look at that|Well, I never},\" said $E. "{A thin string is the beginning of a bridge|That is clever}." And $ehe {brought|went to get} boards and a hammer.

Now {everyone wanted to help|all the others came too}. {The carpenter sawed, the children carried nails, and the baker brought $food.|Some sawed, some hammered, and some cooked soup for the rest.} {On the other side they did the same.|From the other bank, $F and the neighbors did the same.}
<weather>
After {three|five} days the two halves {met|touched} in the middle{ of the river|}. $H {walked from one end|stepped out from one side} and $F from the other{, and there they met|}.
<hug>
They called it the {String Bridge|Bridge of the Thin String}, and {it still stands today|it is there to this day}.
<moral_patience>
<end>
""",
    ),
    (
        "bird_wing",
        "any",
        ["a bird with a broken wing", "caring for a bird", "letting go"],
        """
<open>
<trait_line>
One {cool|windy} {morning|day}, $H found a {little|small} {sparrow|swallow|finch} near $outside. {One of its wings hung down, and it could not fly.|It fluttered on the ground, for one wing was hurt.}
"{Do not be afraid|You poor thing},\" $he {whispered|said}, {took off $his hat|made a nest of $his scarf} and carried the bird home.

"{A broken wing needs rest|It will take time},\" said $E and showed $him how to {bind the wing with a strip of cloth|make a soft bed in a box}. "{And remember: it is a wild bird|But do not forget, it does not belong to us}. {One day it must go|When it is well, you must let it go}."
{Every day|Each morning} $H brought {seeds and water|crumbs and fresh water}. $^he called the bird {Pepper|Button|Dot}. {It ate from $his hand.|After a week it hopped onto $his finger.} {Soon it sang when $he came in.|In the evening it sang, and $H whistled back.}
"{It likes you|You two are good friends},\" said $F, who {often came to visit|had come to look}. "{Will you keep it|Can you not keep it forever}?"
$H {said nothing|looked at the bird and did not answer}. {$^he wished that $he could.|That was just what $he wanted.}

{Then the day came when|After some weeks} the wing was {strong again|healed}. The bird sat {at the window|on the window sill} and {looked at the sky|listened to the other birds}.
<worry>
"{It is time|I think it wants to go},\" said $H{ softly|}. {And $he opened the window.|$^he opened the window wide.}
The bird {hopped|came} once more onto $his hand. Then it {spread its wings|flew up}, {over the roof|over the trees} and away.
?$H {waved|stood there} for a long time.
{For some days it was very quiet in the room.|The box was empty, and $H was sad for some days.} But {the next spring|one morning in spring} $he {woke up|heard something}. {There was a song at the window, and it was a song $he knew.|A bird sat on the sill and sang, and beside it sat another.}
<joy>
"{What you love, you must let go|Good friends come back},\" said $E{ with a smile|}.
<end>
""",
    ),
    (
        "cave",
        "any",
        ["exploring a cave", "a cave full of crystals", "an adventure underground"],
        """
<open>
<friend_line>
{They both loved adventures.|Both of them wanted to be explorers.} One day, behind {a curtain of ivy|some thick bushes} near $outside, they {found|saw} the mouth of a cave.
"{How far does it go|Who knows what is in there}?" {whispered|asked} $F. "{Only one way to find out|Let us see},\" said $H.
{But $H was careful, too.|They were brave, but they were not foolish.} $^he tied a long {thread|string} to a tree {outside|at the entrance} and {held the other end|took the rest of it with $him}. "{So that we find our way back|This will lead us home},\" $he said, and lit the {lamp|lantern}.

{Inside it was cool and dark.|It was cold in there, and every step had an echo.} {Drip, drip, went the water.|Water dripped from the ceiling.} The {passage|way} {turned left, then right|split in two, and then again}.
?"{Hello|Is anyone here},\" called $F. "Here, here, here,\" answered the {echo|cave}, and they {laughed|jumped}.
Then the passage opened, and they {stood still|caught their breath}. {All around them were crystals, thousands of them.|They were in a great hall full of crystals.} {They shone in the light of the lamp like stars.|In the lamplight they glowed $color and white.}
"{It is like standing inside the night sky|It is the most beautiful place in the world},\" said $H{ quietly|}.

{Just then|At that moment} a {cold wind|puff of air} blew, and the lamp went out. {It was as dark as ink.|Now they could not see anything at all.}
"{I cannot see my own hand|It is so dark}!\" {cried|said} $F. <worry>
"{Here, take my hand|I am right next to you},\" said $H. "{We have the thread|Remember the thread}. {We only have to follow it|It knows the way}."
<courage>
{Step by step|Slowly}, $H {wound up the thread|let the thread run through $his fingers}, with $F {close behind|right behind $him}. {Left, right, and left again.|Around one corner, and around another.} {At last there was a gray spot, then a bright one, and then they stood in the sun.|And there, at last, was daylight.}
<joy>
"{Shall we tell anyone|Who would believe us},\" said $F. "{Only $E|We will tell $E},\" said $H. "{And next time we will take two lamps|And tomorrow we come back, with two lamps}."
<moral_friend>
<end>
""",
    ),
    (
        "star",
        "any",
        ["a fallen star", "a little star", "helping a star"],
        """
<open>
<trait_line>
One clear night, $H {saw a star fall|saw a light fall from the sky}. It came down {behind $outside|not far from $outside}.
$^he {put on $his coat|slipped out of the door} and ran{ through the wet grass|}. There, {in the moss|between two stones}, lay {a tiny star|a little star}, no bigger than {an apple|a plum}. {It was warm, and it was crying.|It glowed faintly and shook.}
"{Why are you crying|What is wrong}?" asked $H.
"{I leaned out too far|I wanted to look at the Earth and fell},\" said the star. "{And now I cannot get home|I must be back before morning, or my light will go out}."

<worry>
"{Then there is no time to lose|I will help you},\" said $H. {$^he put the star in $his pocket|$^he wrapped it in $his scarf} and {woke|ran to} $F.
"{We need something that reaches the sky|We must find a way up to the sky}," said $H. They thought of {the tallest tree|a ladder}, but {it was not tall enough|that was much too short}. {They thought of a kite, but there was no wind.|A balloon might do, but they had none.}
"{What about $landmark|The top of $landmark is the highest place},\" said $F. "{Perhaps from there it can jump|From up there it is not so far}."
So they climbed, {hand in hand|one behind the other}. {The star lit the way.|The star gave them light, but it was getting weaker.} {In the east, the sky was already gray.|A pale line showed in the east.}
<courage>

At the top $H {held the star up|lifted the star} as high as $he could. {"Too far," whispered the star.|But the star could not jump. "I am too tired," it said.}
"{Let us sing|Maybe it needs a song},\" said $F{ suddenly|}. {They sang the song that $E always sang at bedtime.|So they sang, softly, a song that both of them knew.} {With each line the star grew brighter.|And as they sang, the star began to shine.} {It rose from $his hand, higher and higher.|Then it floated up, like a spark from a fire.}
Just before the {sun came up|first ray of sun}, it was back in its place. {It blinked twice.|It winked at them.}
{On every clear night since then|Since then}, one star {shines a little brighter|blinks twice} when $H looks up{ and says good night|}.
<moral_kind>
<end>
""",
    ),
    (
        "letter",
        "any",
        ["delivering a letter", "an important letter", "a long way over $landmark"],
        """
<open>
<trait_line>
One {morning|day}, $E {called|sent for} $him. "{I have an important letter|This letter must get to $town2 today},\" $ehe said. "{It must be there before sunset|It is for my oldest friend}. {My legs are too old for the way|I cannot walk so far}. {Will you take it|Can you do it}?"
"{You can count on me|I will bring it there},\" said $H and put the letter {in $his bag|under $his hat}.

<weather>
<road_alone>
{First|After an hour} $he came to a stream. {The stepping stones were under water.|The water was high.} $H {took off $his shoes|rolled up $his sleeves}, {held the letter above $his head|put the letter between $his teeth} and {waded across|went through, step by step}.
Then the {wind|rain} came. {It tore at the bag, but $H held on tight.|$H hid the letter under $his coat and walked on.}
Near $outside {sat|stood} $Fdesc, {holding a sore foot|crying}. "{I cannot find my way home|I have hurt my foot},\" {said the stranger|came the answer, when $H asked what was wrong}. "My name is $F."
$H looked at the sun. {It was already low.|There was not much time.} <worry> "{A letter can be late, but a friend cannot wait|Then come with me},\" $he said, and {gave $F $his arm|let $F lean on $him}.

They went {slowly|on together}. {But $F knew a short way through the fields.|"I know a path that nobody else knows," said $F.} {It saved them half the way.|It was so much shorter that they were there in no time.} {The sun was just touching the hills when $H knocked on the door.|Just as the sun went down, $H knocked.}
{An old woman|An old man} opened it and read the letter {twice|with shining eyes}. "{I have waited for this for years|This makes me very happy},\" came the answer. "{It is very short|It has only one line}. {It says|Listen}: {Forgive me, and come to dinner|I miss you, old friend}."
<joy>
{On the next Sunday|A week later}, {two old friends sat at one table|they all sat at one table}, {and $H and $F got the biggest pieces of cake|with $H and $F between them}.
<moral_kind>
<end>
""",
    ),
    (
        "water",
        "any",
        ["a dry summer", "looking for water", "sharing water"],
        """
<open>
One summer, it did not rain for {many|forty} days. {The pond dried up, and the leaves turned brown.|The grass was yellow, and the well was almost empty.} {Everyone was thirsty.|All of them were thirsty, and nobody sang anymore.}
"{Beyond $landmark there used to be a spring|Far away, beyond $landmark, there is a spring},\" said $E. "{But it is far|If only I were younger}!"
"{I will go|Let me go},\" said $H. {Some shook their heads.|"You?" asked the others. "You are too small."}
$E {filled|gave $him} a {small |}bottle with the last water. "{Use it well|This is all we have},\" $ehe said.

<road_alone>
The sun {burned|was hot}. {$^he wanted to drink, but $he saved the water.|Only one sip, $he told $himself, and no more.}
{Near $outside|After some hours} $he met $Fdesc who {lay in the dust|was too weak to stand}. "{Water|Please},\" {whispered|said} the {other|poor thing}.
$H looked at the bottle. {It was so little.|There was hardly enough for one.} <worry> But then $he {held it out|knelt down}. "{Drink|Here},\" $he said. "{It is not much|You need it more than I do}."
{"Thank you. I am $F," said the other, and sat up.|The other drank and sat up. "My name is $F," came the answer. "You saved me."} "{Where are you going|What are you looking for out here}?"
"{I am looking for the old spring|For the spring beyond $landmark},\" said $H.
"{The spring|That one}? {I was born there|I know it well},\" said $F. "{You would never have found it alone|It is hidden under a rock}. {Come, I will show you|Follow me}."

And {so they came|in the evening they came} to {a wall of rock|a big gray rock}. $F {pushed aside some ivy|rolled a stone aside}, and there it was: {clear, cold water|water, clear as glass}.
<joy>
They {dug a small channel|dug all night}, and {in the morning|by sunrise} the water {ran down|was flowing} into the valley. {The pond filled, and the frogs began to sing.|Everyone came running with buckets and cups.}
<wise>
<moral_kind>
<end>
""",
    ),
    (
        "clock",
        "any",
        ["the clock tower", "a clock that stopped", "being small"],
        """
<open>
$H was the smallest of all, and {often|sometimes} $he was {sad|unhappy} about it. {"You are too small for that," the others said.|When the others played ball, $he was always left out.}
In the middle of $town stood a {tall|high} clock tower. {It told everyone when to get up and when to eat.|Everybody lived by its bells.}

One {morning|day} in $season it was silent. {The hands had stopped at ten past six.|The hands did not move, and no bell rang.} {The baker baked too late, the school began too early, and dinner was cold.|People came too late or too early, and nobody knew when it was noon.}
The {clockmaker|mayor}, $E, climbed up and looked {inside|into the works}. "{Something is stuck deep between the wheels|I can see it, but I cannot reach it},\" $ehe said. "{My arm is too thick|The gap is much too narrow}. {We would have to take the whole clock apart|It will take months}."
{All the strong ones tried. Nobody fit.|One after another they tried, but all of them were too big.}
"{What about $H|$H could do it},\" said $F{ suddenly|}. {Everyone turned around.|They all looked at $him.}
<worry>

<courage>
$H {crawled|slipped} in between the wheels. {It was dark and smelled of oil.|Big teeth of brass stood all around $him.} {Deeper and deeper $he went.|It was so narrow that $he had to breathe in.} And there, {behind the biggest wheel|under the last spring}, $he found it: {a bird's nest with three eggs|a nest, and in it three blue eggs}!
{$^he did not pull it out in a hurry.|"Careful now," $he told $himself.} {Gently|With both hands}, $he carried the nest out and {set it on the window sill of the tower|put it on a safe beam}, where the mother bird could find it.
{Tick. Tock. The wheels began to turn.|Then the big wheel moved. Tick, tock!} {The bells rang over the roofs, and everyone cheered.|All the bells rang at once, and down in the street the people clapped.}
<joy>
"{We would have waited months for what you did in an hour|Nobody else could have done it},\" said $E. "{Small is just the right size for some things|It is good that not everyone is big}."
{Since then, $H has been the keeper of the clock.|$E gave $him a key to the tower, and it hung around $his neck from that day on.}
$H had learned that {everyone is the right size for something|being small can be a great thing}.
<end>
""",
    ),
]
