# ruff: noqa: E501 - lines of text read better whole
"""Plots set at home, in the village and at school: losing, mending, sharing, learning.

A plot is (id, cast, what it is about, text). In the text an empty line parts paragraphs, a line is a sentence or
two, and a line that begins with ``?`` may be left out. ``cast`` is any, child or animal.
"""

from __future__ import annotations

PLOTS: list[tuple[str, str, list[str], str]] = [
    (
        "lost_thing",
        "any",
        ["losing a $treasure", "a lost $treasure", "looking for a $treasure"],
        """
<open>
<trait_line>
?<friend_line>
Of all the things $he owned, $he loved $his $treasure {most|best}. {It had been a gift from $E.|$E had given it to $him long ago.}

One {morning|afternoon}, $H reached for the $treasure and found that it was {gone|not there}.
<worry>
"{My $treasure is gone|I cannot find my $treasure}!" $he {cried|called}.
"{When did you see it last|Where did you have it last}?" asked $F, who had {come running|heard the noise}.
$H thought {hard|for a while}. "{Yesterday|Last night}, I think. I was {at|near} $outside."

So they {went|walked} back to $outside {together|at once}.
?<weather>
They looked {under every leaf|behind every stone|high and low} and {between the roots|in the long grass}, but {the $treasure was not there|they found nothing}.
"{Let us think again|There is one more place},\" said $F. "{What did you do after that|Where did you go next}?"
"{I was thirsty|I was hot}, so I {went to the stream to drink|stopped by the stream},\" said $H {slowly|all at once}. "{Of course|That is it}! The stream!"

They ran {down the path |}to the stream. There, {half hidden in the sand|caught between two stones|under a fern}, lay the $treasure{, wet but whole|, a little muddy but whole}.
<joy>
<hug>
{When they came home|That evening}, $H told $E {everything|the whole story}.
<wise>
From then on, $he {kept the $treasure in a safe place|always looked twice before $he left a place|tied a ribbon to the $treasure so that it could not hide}.
<moral_friend>
<end>
""",
    ),
    (
        "new_friend",
        "any",
        ["making a new friend", "being shy", "a shy $kind"],
        """
<open>
But $H was {very |}shy. When others played, $he {watched from far away|hid behind a tree|looked at $his feet}.
?$^he wanted to join in, but the words {never came|stuck in $his throat}.

One {fine |}$season day, $H saw someone new near $outside. It was $Fdesc{, sitting all alone|, with a sad look}.
?<weather>
$H {wanted to run away|stopped}. Then $he {thought|remembered}: "{Maybe $fhe is shy too|Perhaps $fhe feels just like me}."
<courage>
"{Hello|Hi},\" $he said {in a small voice|very quietly}. "{My name is $H|I am $H}. {What is yours|And you}?"
"{My name is $F|I am $F},\" said the {other|new one}{ with surprise| and smiled a little|}. "{I just came here, and I do not know anyone|I have no friends here yet}."

$H {looked around|thought for a moment} and {took out|found} $his $toy. "Do you {want|like} to play with my $toy?"
"{Very much|I would love to},\" said $F.
They played {until the sun was low|all afternoon}, and {soon|before long} they were {laughing and talking|telling each other jokes} as if they had {always known each other|been friends for years}.
<meal>

The next {day|morning}, the others {came closer to see what was so funny|asked if they could play too}.
$H was {not shy at all|only a little shy} this time. "{Of course|Yes, come},\" $he said. "This is my friend $F."
<joy>
<wise>
?It had taken only one small word: hello.
<moral_friend>
<end>
""",
    ),
    (
        "dark_night",
        "any",
        ["being afraid of the dark", "a $kind who was afraid of the dark", "a long dark night"],
        """
<open>
<trait_line>
There was only one thing $he did not like: the dark. {When the light went out, every shadow had teeth.|At night, even the wind {sounded like|seemed} a whisper.}

One {windy|stormy} evening, the lamp {went out|flickered and died}, and $H {sat up in bed|pulled the blanket over $his head}.
Something {tapped|scratched} {at the window|outside}. Tap, tap, tap.
<worry>
"{Who is there|Is someone there}?" $he {whispered|asked}. {Nobody answered.|There was no answer.}

Then the door opened, and $E came in with a {small lantern|candle}. "{Can you not sleep|What is wrong}, $H?"
"{There is something outside|I hear something},\" said $H. "{It wants to come in|I am afraid}."
"{Let us look at it together|Then we will find out what it is},\" said $E{ calmly|}. "{A fear gets smaller when you look at it|Most monsters are small when you shine a light on them}."

$E gave $him the light and took $his hand.
<courage>
They {opened the window|looked out}. And what was it? {It was only a branch that moved in the wind.|Just a branch of the old $fruit_tree tree, knocking at the glass.}
$H {laughed|began to laugh}. "{It only wanted to say good night|That was my monster}?"
?"{You see|Well},\" said $E, "{the dark is only the day with its eyes closed|nothing is there at night that is not there by day}."
They {stayed at the window for a while|sat down by the window} and {counted the stars|looked at the stars}. There were {more than $he had thought|so many of them}, and $H thought that they were {beautiful|like tiny lamps}.

{After that night|From then on}, $H {kept a small lamp by the bed, but $he hardly ever needed it|said good night to the branch every evening}.
<moral_courage>
<end>
""",
    ),
    (
        "broken_thing",
        "any",
        ["telling the truth", "a broken vase", "honesty"],
        """
<open>
<trait_line>
In the {front room|kitchen} stood a $color {vase|jug|bowl} that $E {loved very much|had kept for many years}.

One {rainy |}day, $H was playing inside with $his $toy, {although $E had said not to|which was not allowed}.
{Bump|Crash}! {Something fell from the shelf and broke into {three|many} pieces.|The table shook, and something fell to the floor.} It was the one thing $E loved most.
<worry>
"{What have I done|Oh no}!\" $he {whispered|thought}. {Quickly, |}$he hid the pieces {behind the curtain|under a cloth|in a box}.

When $E came {home|back}, $ehe asked, "{Has anyone seen my {favorite|good} piece from the shelf|Where is the thing that stood here}?"
$H looked at the floor. "{I do not know|Maybe the wind did it},\" $he said, and $his face {turned red|grew hot}.
All {afternoon|evening}, $H could not {play|eat|smile}. {The lie sat in $his stomach like a stone.|The lie grew heavier and heavier.}

{At last|In the end}, $he {went to|stood in front of} $E. <courage>
"{I broke it|It was me},\" said $H. "{I was playing inside, and then I hid the pieces|I hid the pieces because I was afraid}. I am {so |very |}sorry."
$E was {quiet|silent} for a {moment|while}. Then $ehe {put an arm around $him|took $his hand}. "{I am sad about it|It was dear to me},\" $ehe said, "but {a thing can be mended|I am glad that you told me}. {Your honest word is worth more than that|Trust is harder to mend than clay}."

Together they {glued the pieces|put the pieces back together}, {one by one|bit by bit}. {You could still see the cracks, but it stood straight again.|It was not perfect, but it stood in its old place again.}
?$E {put a $flower in it|said that it looked even better than before}.
<moral_honest>
<night>
<end>
""",
    ),
    (
        "cake",
        "any",
        ["baking a cake", "a birthday cake that went wrong", "a surprise for $E"],
        """
<open>
<trait_line>
It was {nearly |almost |}$E's birthday, and $H wanted to {make|bake} $ehim a {big |}cake. {"It must be a surprise," $he said.|Nobody was to know about it.}

{Early in the morning|While $E was out}, $H {tied on an apron|took out a bowl} and {set to work|began}. $^he {mixed|took} {flour, eggs and milk|eggs, butter and flour}, and a {cup|bowl} of $fruit.
<friend_line>
"{What are you doing|Can I help}?" asked $F, {looking in at the door|coming in}.
"{Yes, please|Of course},\" said $H. "{Put in the sugar|You can add the sugar}. It is in the $color {tin|jar}."

They {waited|sat} in front of the oven. The cake rose {higher and higher|slowly}, {and it looked wonderful|and soon it was golden}. But when $H {tasted|tried} a {tiny |}piece, $he {made a face|stopped}.
"{It is salty|This is salt},\" $he {cried|said}. "{That was not the sugar|We used the wrong $color jar}!"
$F {looked at the floor|turned pale}. "{Oh no, I am sorry|That was my fault},\" $fhe said. "{I did not read the label|I should have tasted it first}."
$H {was sad for a moment|looked at the cake}. Then $he {began to laugh|had to laugh}. "{It is only a cake|Nobody is hurt},\" $he said. "{We have enough for another one|Let us start again}!"

So they {began again|started over}, and this time they {tasted everything first|read every label twice}. {Just as the second cake came out of the oven, the door opened.|The second cake was hardly on the table when $E came in.}
"{Happy birthday|Surprise},\" they {called|shouted}.
$E {clapped $ehis hands|was so surprised that $ehe had to sit down}. "{This is the best cake I have ever had|What a wonderful surprise},\" $ehe said{ after the first bite|}.
They told $ehim about the {first|salty} cake, and {all three|everyone} laughed until {the cups shook|their sides hurt}.
<moral_patience>
<end>
""",
    ),
    (
        "race",
        "any",
        ["a race", "winning and losing", "the great race of $town"],
        """
<open>
$^he could run {faster than the wind|like the wind}, and {everyone|all the others} knew it.
{Every year|In $season}, there was a {big |great |}race {from $outside to|around} $landmark. The prize was a $color {ribbon|cup}.
"{This year I will win|This time the prize is mine},\" said $H. $^he {trained every day|ran every morning before breakfast}.

On the day of the race, {the whole town came to watch|there were flags everywhere}.
<weather>
$F {was there too|was running too}, {nervous but happy|with new shoes}. "Good luck, $H,\" said $F. "{May the best one win|You will need it}!"
"{Ready, steady, go|One, two, three, go}!" called $E, and {off they went|everybody ran}.

$H was {soon|quickly} in {front|the lead}. $^he could already see the {finish|end}. Then $he heard a cry {behind|not far behind} $him.
$F {had fallen over a root|had tripped over a stone} and {sat on the ground, holding $fhis foot|could not get up}.
<worry>
{If $he stopped, $he would lose. If $he went on, $F would be all alone.|"If I stop now, I will lose," $he thought.} $H {looked at the finish|looked ahead}, then $he looked back. {And $he turned around.|It was not a hard choice after all.}
"{Lean on me|Put your arm around me},\" said $H. "{We will finish together|We will go slowly}."
?"{But you will lose|What about the prize},\" said $F. "{There will be another race|A friend is more important},\" said $H.

{All the others|The others} ran past. When $H and $F {came to|crossed} the finish, they were the very last, but {everyone cheered|the people clapped louder than for anyone else}.
$E {came up to them|stepped forward}. "{The fastest runner gets the ribbon|The prize for the fastest goes to another},\" $ehe said. "But {this is for the kindest|there is also a prize for the biggest heart}." And $ehe gave $H {a $flower|a basket of $fruit}.
<joy>
$^he shared {everything|it} with $F{, of course|}.
<moral_kind>
<end>
""",
    ),
    (
        "seed",
        "any",
        ["planting a seed", "a seed that grew slowly", "growing a $flower", "being patient"],
        """
<open>
<trait_line>
One day in {early |}spring, $E gave $him a {tiny|small brown} seed. "{Take good care of it|Be patient with it},\" $ehe said. "{Something beautiful is sleeping inside|One day it will surprise you}."

$H {dug a small hole|made a hole in the earth} near $outside, put the seed in and {covered it with earth|gave it some water}.
The next morning $he ran out to {see|look}. {Nothing.|There was nothing to see.} {The day after, there was still nothing.|$^he waited a second day, and a third. Still nothing.}
"{It is broken|This seed does not work},\" said $H. "{Maybe I should dig it up and look|I will never see it grow}."
"{Do not dig|Leave it in peace},\" said $F, who had come by. "{It needs time|Seeds work in secret}. {You cannot see it, but it is growing|Roots come first}."

So $H {waited|kept on waiting}. Every {morning|day} $he {brought water|gave it water}{, and $he sang to it|, and pulled the weeds|}. When {it was hot|the sun burned}, $he {made a roof of leaves|gave it shade}. {When a storm came, $he|One night the wind blew hard, and $he} put {stones|sticks} around it.
?<weather>
?"{Good morning, seed|How are you today, seed},\" $he {said|asked} each day, and $F {laughed|smiled}.

Then, one {morning|day}, there was a {tiny |}green {tip|leaf} in the brown earth.
<joy>
The plant grew {and grew|taller every day}, and in summer it {opened|became} {a big $color flower|the finest flower for miles}. {Bees came from everywhere.|Bees and butterflies came to visit.}
"{You did that|That was your work},\" said $E. "{Your hands and your patience|You gave it water, but most of all time}."
{In autumn|When the flower faded}, $H found {a handful of new seeds|ten new seeds} in it. $^he gave {half of them|one} to $F{ and kept the rest for spring|}.
<moral_patience>
<end>
""",
    ),
    (
        "kite",
        "any",
        ["a kite in a tree", "flying a kite", "working together"],
        """
<open>
<trait_line>
On {$his birthday|a windy day in $season}, $H got a new kite. It was $color, with a long tail.
<friend_line>

"{Let us fly it|Come, let us try it},\" said $H, and they ran to {the meadow|the top of the hill}.
<weather>
The kite {climbed|flew} {higher and higher|up and up}. {It danced like a bird.|It looked as small as a bird.} Then a {strong|sudden} wind {came|pulled}, the string {broke|slipped out of $his hand}, and the kite {landed|was caught} in {the top of a tall tree|the highest tree}.
"{Oh no|My kite},\" {cried|said} $H. <worry>

First, $H {jumped|tried to jump}, but {the branch was too high|that was no use}. Then $F threw {a stick|a pine cone}, but it {missed|came straight down again}. {They tried to shake the tree, but it did not even move.|They shook the tree together, but only leaves came down.}
$E {came by|passed} with {a basket of $fruit|a wheelbarrow}. "{What are you looking at|What is up there}?" $ehe asked.
"{My kite|The kite},\" said $H {sadly|and pointed}. "{None of us is tall enough|It is too high for all of us}."
"{None of you alone|Each of you is too short},\" said $E, "but {what about all of us together|what if you add yourselves up}?"

$H and $F looked at each other and {laughed|understood}. $E {stood firm beside|leaned against} the tree, $F {climbed on $ehis shoulders|stood on $ehis shoulders}, and $H climbed up {to the very top|last of all}.
<courage>
$^he {stretched|reached} out {a hand|$his arm} as far as $he could, and {at last|finally} $he {had|caught} the $color tail.
"{Got it|I have it},\" $he {called|shouted}. {Everyone cheered.|Down they came, one after the other.}
They {tied a new string|mended the string with a good knot}, and {the kite flew again until evening|soon the kite was in the sky again}. {This time they all held the string together.|Each of them had a turn.}
<moral_friend>
<end>
""",
    ),
    (
        "missing_pies",
        "any",
        ["a mystery", "who took the $pie", "a little detective"],
        """
<open>
<trait_line>
$H wanted to {be a detective|solve mysteries} one day, and {always carried a magnifying glass|never went out without a notebook}.

One {morning|day}, $E came {running out of the kitchen|out of the house}. "{My $pie|The $pie},\" $ehe {cried|said}. "{I put it on the window sill to cool, and now it is gone|It was here a minute ago}!"
"{A case|This is a case for me},\" said $H, and {took out $his notebook|called $F, who always helped $him}.
"{First we look for clues|Let us look at the ground},\" $he {said|told $F}.

Under the window they found {crumbs|a trail of crumbs}. {"Crumbs do not walk by themselves," said $F.|"Someone was hungry," said $F.} The crumbs led {across the yard|through the garden} and {past $outside|behind the shed}.
?<weather>
There was also a print in the mud. It was {small|round}, with {four toes|tiny claws}.
"{A dog would be bigger|It is not a cat},\" said $H {slowly|, thinking}. "{Look here: a tuft of gray fur|And here is some gray fur}!"
They {followed|crept along} the trail {on tiptoe|very quietly} until they came to {a hollow log|a pile of wood}. Something {moved|rustled} inside.

<courage>
$H {bent down|looked in}. Two {round|bright} eyes looked back. It was a mother {raccoon|cat}, and {behind|next to} her {slept|lay} {three|four} tiny babies.
"{So that is our thief|Case solved},\" {whispered|said} $F. "{She was only hungry|She has so many mouths to feed}."
$H {closed the notebook|nodded}. {"She did not mean any harm," $he said.|"A thief with a good reason," $he said.}
They went back and told $E, who {could not be angry for long|had to smile}. "{Then I will bake a second one|Well then},\" $ehe said, "and {we will put out a bowl of scraps every evening|tomorrow we will bring her some fish}."
From then on, {nothing was missing again|the window sill was safe}. In $his notebook, $H wrote: "{Case closed|Solved}. {Thief: hungry. Sentence: supper.|The thief is now a friend.}"
<moral_kind>
<end>
""",
    ),
    (
        "music",
        "any",
        ["learning to play the $instrument", "music", "playing at the festival"],
        """
<open>
One {evening|day}, $H heard {somebody|a traveler} play the $instrument, and {from that moment $he wanted nothing else|it was the most beautiful sound $he knew}.
$E had an old $instrument in {a trunk|the attic}. "{You may have it|It is yours},\" $ehe said, "{if you promise to practice|but it will not play by itself}."

At first it sounded {terrible|awful}. {The birds flew away, and even the cat left the room.|"Is something hurt?" asked the neighbors.}
"{I will never learn it|It is too hard},\" said $H after {a week|the first day}.
"{I like it|It was better than yesterday},\" said $F. "{Play the first three notes again, only those|Learn one small piece at a time}."
So $H {practiced|played} every day, {slowly at first|one line at a time}, {in the morning and in the evening|in rain and in sunshine}. Three notes became {five|six}, and {five|six} notes became a song.

In $season there was a festival in $town. "{You should play|Play for us},\" said $F.
$H {turned pale|shook $his head}. "In front of {everyone|all these people}?"
<worry>
When {the evening came|$his turn came}, $he {stood|stepped} {on the stage|in front of the crowd} and $his hands {trembled|shook}. {Everybody was looking at $him.|It was so quiet that $he could hear $his own heart.}
Then $he saw $F in the first row, {smiling|nodding}. <courage>

$H {began to play|played the first three notes}. {Then came the next, and the next.|They came out clear and soft.} {Soon $he forgot the crowd.|Soon there was only the music.} {One note was wrong, but $he simply went on.|Once $his finger slipped, but nobody minded.}
When the song was over, {there was silence|nobody moved}. Then {all the people clapped|a storm of applause broke out}.
<joy>
<wise>
<moral_patience>
<end>
""",
    ),
    (
        "swaps",
        "any",
        ["trading at the market", "a chain of swaps", "a present for $E"],
        """
<open>
<trait_line>
{Soon it would be|Tomorrow was} $E's birthday, but $H had no money for a present. All $he had was {one apple|a single apple}.
"{An apple is a start|Well, it is something},\" $he said and {went|walked} to the market.

{At the first stall|Near the gate} sat a {painter|tired man} who had {not eaten all day|forgotten his lunch}. "{What a fine apple|I would love that apple},\" he said. "{I will give you this blue ribbon for it|You may have this blue ribbon for it}."
"{Gladly|With pleasure},\" said $H. Now $he had {a blue ribbon|the ribbon}.
?<weather>
{A little farther on|Around the corner}, a {girl|woman} was {chasing her hair out of her eyes|close to tears, because her hat would not stay on}. "{If only I had a ribbon|I need a ribbon},\" she {said|sighed}. $H gave her the blue ribbon, and she gave $him {a jar of honey|a pot of honey} {in return|from her basket}.

{By the fountain|At the next corner} $he met $F, who {looked worried|was carrying a basket}. "{My little brother has a cough|My throat hurts},\" said $F, "{and there is no honey left at the market|and I have looked for honey everywhere}."
"{Then take mine|Here, take this},\" said $H at once{ and asked for nothing|}.
But $F {ran home|reached into the basket} and {came back with|took out} a {big |}ball of {soft |}$color wool. "{It is only fair|A swap is a swap},\" $fhe said.

With the wool under $his arm, $H {went home|walked home}. {All evening $he sat by the fire and knitted.|All night $he worked with two thin sticks for needles.} {In the morning|At sunrise} it was {done|finished}: a {warm|soft} $color scarf.
"{It is beautiful|I have never had such a fine scarf},\" said $E and {put it on at once|would not take it off all day}. "{Wherever did you get it|What did it cost}?"
"{One apple|It cost one apple},\" said $H {and laughed|with a smile}. {Then $he told the whole story.|And $he told $ehim about the ribbon, the honey and the wool.}
<moral_kind>
<end>
""",
    ),
    (
        "sharing",
        "any",
        ["sharing", "a $kind who did not want to share", "a new $toy"],
        """
<open>
{One day|On $his birthday}, $H got a wonderful new $toy. {It was the finest in all of $town.|Nobody in $town had one like it.}
"{It is mine|This is only for me},\" said $H. "{Nobody else may touch it|No one else may play with it}."

{Soon|Before long} $F came {to the door|along}. "{What a beautiful $toy|You have a new $toy}! {May I try it|Can I play too}?"
"No,\" said $H{ and held it tight|}. "{You might break it|It is mine}."
$F {looked down|turned away} and {went home|walked off} {without a word|slowly}. {Others came and asked, and $H gave them all the same answer.|The others asked too, and the answer was always no.}

So $H played alone {in the yard|under the tree}. {The first hour was fun.|At first it was fun.} But {soon|after a while} {something was missing|it was very quiet}. {There was nobody to laugh with.|Nobody said, "Look at that!" and nobody laughed.} {From far away|From behind the wall} $he heard the others {laughing|playing} with {nothing but an old rope|a few sticks and stones}.
$E sat down {beside|next to} $him. "{You have the best $toy of all|So fine a $toy},\" $ehe said, "{and such a long face|and yet you look sad}. {Why is that|What is wrong}?"
$H thought about it. "{It is no fun alone|I think the $toy is not the fun part},\" $he said{ at last|}. "{The others are|I want my friends back}."

{The next moment|Then} $H {stood up|jumped up} and {ran|went} to $F. <courage>
"{I am sorry|I was not kind},\" said $H. "{Here, you go first|You may have the first turn}."
$F {stared|looked at $him in surprise}, then {grinned|smiled}. {"Together?" $fhe asked. "Together," said $H.|"I have a better idea," said $fhe. "Let us play together."}
That {afternoon|day} everyone had a turn, and {the $toy was never so much fun|the yard was full of laughter}.
?It even got {a small scratch|a little dent}, but $H {did not mind|hardly noticed}.
<moral_friend>
<end>
""",
    ),
    (
        "sick_friend",
        "any",
        ["a sick friend", "being kind to a friend", "soup for a friend"],
        """
<open>
<friend_line>
Every {morning|day} the two met at $outside{ to play|}.

But one {cold|gray} {morning|day}, $F {did not come|was not there}. $H waited {and waited|for an hour}. {"That is strange," $he thought.|"$F is never late," $he thought.}
$^he {went|ran} to $F's house and knocked. {"Come in," said a weak voice.|A small voice answered.} $F lay in bed with a {red nose|thick scarf} and {a hot forehead|shining eyes}.
"{I have caught a cold|I am sick},\" said $F{ and sneezed|}. "{I cannot play today|Go and play without me}."
"{Certainly not|Without you it is no fun},\" said $H. "{I will be back soon|Wait here}."

$H {ran|hurried} to $E. "{What helps against a cold|What does a sick friend need}?" $he asked.
"{Three things|That is easy},\" said $E. "{Something warm, something sweet, and someone who stays|Hot soup, a bit of honey, and company}."
So $H {chopped|washed and cut} carrots and {onions|leeks}, {stirred the pot|made a pot of soup} and {took a jar of honey from the shelf|put a jar of honey in a basket}.
?It began to {rain|snow}, but $H {pulled $his hat down|did not mind} and {carried the pot under $his coat|walked faster}.

"{Soup|Here comes the doctor},\" $he {called|said} when $he came in. $F ate {two bowls|a whole bowl}, and {a little color came back to $fhis cheeks|soon $fhe looked better}.
Then $H sat down {by the bed|on the edge of the bed} and told {one story after another|funny stories} until $F {fell asleep|laughed and forgot the cough}.
{Three days later|After a few days}, $F was {well|healthy} again. And what happened {then|the week after}? {H_SNEEZE}
"{Now it is my turn|Wait here},\" said $F{ with a grin|}. "{I will be back soon|I know exactly what you need}." And {an hour later|soon} there was a {pot|bowl} of hot soup on the table.
<moral_friend>
<end>
""".replace("{H_SNEEZE}", "{$H woke up with a sore throat.|$H sneezed three times in a row.}"),
    ),
    (
        "tree_house",
        "any",
        ["building a tree house", "a quarrel between friends", "saying sorry"],
        """
<open>
<friend_line>
One day they {found|saw} the perfect tree near $outside. "{Let us build a tree house|We could build a house up there},\" said $H.
"{Yes|What a good idea},\" said $F. {They collected boards and rope and began at once.|They got boards, nails and a rope, and set to work.}

{For two days|At first} everything {went well|was fine}. Then they {came to|had to choose} the color. "{It must be $color|I want it $color},\" said $H. "{No, $color2 is better|I want it $color2},\" said $F.
"{It was my idea|I found the tree},\" said $H. "{But I brought the boards|Most of the boards are mine},\" said $F.
The words grew {louder and louder|sharper}, and {in the end|at last} $F {threw down the brush|put down the hammer} and {went home|left}. {"Then build it alone!" $fhe called.|"I do not want to play anymore," $fhe said.}

$H {worked on alone|tried to work alone}. But who would {hold the board|hold the ladder} while $he {hammered|nailed}? {The board slipped, and the nail went in crooked.|Everything took twice as long, and nothing was straight.}
$^he sat down {on the lowest branch|under the tree}. <worry>
$E came by and {looked up|stopped}. "{A fine house|It will be a nice house},\" $ehe said. "{But it is very big for one|But I see only one builder}."
"{We quarreled|We had a fight},\" said $H, "{about a color|about nothing, really}."
"{Then it is a small thing to mend|Paint dries quickly, and so do tears},\" said $E. "{Who goes first is the stronger one|One of you only has to say one word}."

<courage> $^he {went|walked} to $F's door. {But $F was already standing there, with a hand raised to knock on the way out.|Before $he could knock, the door opened, and there stood $F.}
"{I am sorry|I was silly},\" they said, both at the same time. Then they {laughed|had to laugh}.
{"How about stripes?" asked $H. "One $color, one $color2."|They painted it in stripes: one $color, one $color2, one $color, one $color2.} {It was the most beautiful tree house in $town.|Everybody said that it was the finest house in any tree.}
<moral_friend>
<end>
""",
    ),
    (
        "swim",
        "any",
        ["learning to swim", "not giving up", "learning something hard"],
        """
<open>
<trait_line>
But there was one thing $he could not do: $he could not swim. {When the others jumped into the lake, $H sat on the bank.|While the others splashed in the water, $he only put in $his toes.}

"{Come in|Jump in},\" {called|shouted} $F from the water. "{It is lovely|It is not deep}!"
"{Maybe tomorrow|I have a cold},\" said $H, as {always|every day}. {But tomorrow never came.|In truth, $he was afraid.}
One evening, when {everyone had gone home|the shore was empty}, $F {sat down beside $him|came back}. "{You cannot swim, can you|You are afraid of the water},\" $fhe said {softly|kindly}.
$H {shook $his head|turned red}. "{Please do not tell anyone|Now you will laugh at me}."
"{Never|Of course not},\" said $F. "{I was afraid too, once|Nobody is born a swimmer}. {I will show you how|I will teach you}."

The first evening, they only {stood in the water up to the knees|walked in up to the knees}. The second evening, $H {put $his face under|learned to float}, {and came up coughing|and swallowed half the lake}.
"{I will never learn it|This is impossible},\" $he {said|groaned}.
"{You said that yesterday about floating|Yesterday you could not even do that},\" said $F, "{and look at you now|and today you can}."
The third evening $he {kicked|moved $his legs}, and the fourth evening $he {moved $his arms as well|did three strokes}. {Then, on the fifth evening, $F let go, and $H did not notice.|On the fifth evening $F held $him under the arms, and then let go.}

"{I am swimming|Look},\" {cried|shouted} $H. "{I am really swimming|Nobody is holding me}!"
<joy>
The next day, when the others {ran to|jumped into} the lake, $H was {the first one in|right behind them}. {"Since when can you swim?" they asked.|Everyone stared.} $H {winked at|smiled at} $F. "{Since five evenings ago|I had a very good teacher},\" $he said.
<moral_patience>
<end>
""",
    ),
]
