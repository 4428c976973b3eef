# ruff: noqa: E501 - lines of text read better whole
"""Plots about any thing at all, whatever ``$thing`` was drawn (see plots_home for the form)."""

from __future__ import annotations

PLOTS: list[tuple[str, str, list[str], str]] = [
    (
        "any_lost",
        "any",
        ["a lost $thing", "a $thing", "losing a $thing", "a $thing that was gone", "looking for a $thing"],
        """
<open>
<trait_line>
$^he had {an old|a small|a $color} $thing that {$E had given $him|$he kept by $his bed|$he took everywhere}. {There was no other like it in $town.|$^he would not have traded it for anything.}

One {morning|day}, the $thing was gone. <worry>
$H looked {under the bed, behind the door|in every corner} and {in the garden|along the path}, {but there was no $thing|and found nothing}.
<friend_line>
"{When did you see your $thing last|Where were you with it yesterday}?" asked $F.
"{By $outside|Near $outside}," said $H{ slowly|}. So they went there together.
<weather>
?<road>
{They looked in the grass and under the leaves.|They searched until the sun stood low.} {Then|At last} $F {laughed|called out}: "{Here is something $color|Look over there}!" {Between two stones|Under a bush|In the tall grass} lay the $thing.
<joy>
"{You are the best finder in the world|I would never have found it alone}," said $H. "{Tomorrow you may have the $thing for a whole day|Let us use the $thing together from now on}."
{They took turns carrying it home.|All the way home they carried the $thing between them.}
<end>
""",
    ),
    (
        "any_found",
        "any",
        [
            "finding a $thing",
            "a strange $thing",
            "a $thing that nobody knew",
            "an old $thing",
            "a $thing and its owner",
        ],
        """
<open>
One {day|morning} in $season, $H {walked past|went by} $outside and saw something {in the grass|on the path}. It was a $thing, {$color and quite new|old but beautiful}.
"{Whose can it be|Who has lost this}?" $he {asked|wondered}. {Nobody was there.|There was nobody far and wide.}

$H wanted to keep the $thing. {$^he had always wished for one.|It was just what $he needed.} {But all night $he could not sleep.|But in the evening $he thought: somebody is looking for it.}
"{What would you do|What should I do with it}?" $he asked $E.
$E {smiled|nodded}. "{You know it already|Ask your heart}," $ehe said.
<courage>
So $H {went from door to door|asked everyone in $town}: "{Have you lost a $thing|Does this $thing belong to you}?" {Most of them shook their heads.|One after another said no.}
At the {last door|end of the road} lived $Fdesc named $F. {"My $thing!" cried $F.|$F saw the $thing and began to cry for joy.} "{My grandfather made it for me|I have looked for it for days}."
<joy>
"{You could have kept it|How honest you are}," said $F. "{Come in and have some $food|Will you be my friend}?"
<meal>
{And so $H lost a $thing and found a friend.|$H had no $thing now, but $he had a friend, and that was better.}
<end>
""",
    ),
    (
        "any_present",
        "any",
        [
            "a $thing for a birthday",
            "a present",
            "giving away a $thing",
            "a $thing as a present",
            "a little $thing",
        ],
        """
<open>
<friend_line>
{The birthday of $F was near|Soon it would be $F's birthday}, and $H had no present. {$^he had no money.|$^his pockets were empty.}
"{I could make something|I will make it myself}," $he thought. "{A $thing|How about a $thing}! $F has always wanted a $thing."

{All week|For three days} $H worked on {the little|the} $thing. {It was harder than $he had thought.|First it broke, then it fell apart.} <worry>
$E {looked in|came by}. "{A $thing made with love is never bad|Take your time},\" $ehe said and {helped a little|showed $him how to do it}.
<night>
On the {great day|birthday}, {everyone brought big boxes|there were many presents on the table}. $H {hid the $thing behind $his back|was ashamed of $his small $thing}.
"{What do you have there|And what is that}?" asked $F. {Slowly|Red in the face}, $H held it out.
{$F was silent for a moment.|For a moment nobody spoke.} Then $fhe {hugged $him|laughed for joy}. "{A $thing! And you made it for me|This $thing is the best of all my presents}!"
<joy>
{The other presents were soon forgotten, but the $thing stood by $F's bed for many years.|And $F kept the little $thing for ever.}
<moral_kind>
<end>
""",
    ),
    (
        "any_magic",
        "any",
        [
            "a magic $thing",
            "a $thing that could speak",
            "a little $thing with a secret",
            "a talking $thing",
            "a small $thing",
        ],
        """
<open>
<trait_line>
{In the attic|At the market|Behind $outside} $H found a {little|small|dusty} $thing. {When $he rubbed it clean, it began to glow.|$^he took it home and set it by the window.}
"{Good evening|Hello},\" said the $thing. $H {nearly fell over|could not believe $his ears}. "{You can speak|A $thing that talks}!"
"{Of course|Every $thing can, but few listen},\" said the little $thing. "{I can grant you one wish|I give one good idea to everyone who is kind to me}. {But think well|Choose with care}."

$H thought {the whole night|for a long time}. {A castle? A mountain of $food?|Gold? A $toy?} <night>
In the morning $he met $Fdesc named $F, who {was crying|looked very sad}. "{The well is dry, and my garden is dying|My little brother is ill, and nothing helps},\" said $F.
Then $H {knew|was sure}. <courage>
"{Help my friend|I wish that all is well with $F},\" $he told the $thing. {There was a soft sound, like a bell.|The $thing shone as bright as a star.}
{And when they looked, everything was well.|A moment later, all was good again.}
<joy>
"{You gave your wish away|And what do you have now}?" asked $F.
"{I have a friend,|A friend is worth more than a wish,}" said $H. {The $thing never spoke again, but at times it glowed a little.|From that day on the $thing was silent, but it seemed to smile.}
<end>
""",
    ),
    (
        "any_boast",
        "any",
        [
            "a broken $thing",
            "lending a $thing",
            "two friends and a $thing",
            "saying sorry",
            "a $thing and a quarrel",
        ],
        """
<open>
<friend_line>
{$F had a new $thing, and $H wanted to try it.|One day $F got a wonderful new $thing.} "{May I have it, just for today|Can I borrow it}?" asked $H. "{Yes, but be careful|All right},\" said $F.

$H {ran off with the $thing|took the $thing to $outside}. {It was great fun|Never had $he had so much fun}, until {there was a loud crack|it slipped and fell}. The $thing was broken.
<worry>
{$^he hid it under a bush.|$^he put the pieces into a bag.} "{I will say that it was stolen|Maybe nobody will notice},\" $he thought. {But the $food would not taste good that evening.|But that night $he could not sleep.}
<night>
In the morning $he went to $F. <courage>
"{I broke your $thing|Your $thing is broken, and it was me},\" said $H. "{I am so sorry|I should have been more careful}."
{$F was angry for a moment, then sad, and then $fhe took a deep breath.|$F said nothing for a long time.} "{Thank you for telling me|It was only a $thing},\" $fhe said. "{You are my friend. Let us try to mend it|We can repair it together}."
With {glue, string and a lot of patience|the help of $E}, they {mended it|put it together again}. {It looked a little funny, but it worked.|It was not as pretty as before, but they liked it even more.}
<joy>
<end>
""",
    ),
]
