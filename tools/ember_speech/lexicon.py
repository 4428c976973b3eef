# ruff: noqa: E501 - word lists read better whole
"""The words of the sentences that are spoken: simple English, by part of speech."""

from __future__ import annotations

ADJECTIVES = """able afraid amazing ancient angry awful bad beautiful big bitter black blue bold boring brave brief bright broken brown busy calm careful cheap clean clear clever cold comfortable common complete cool correct crazy cruel curious cute dangerous dark dead dear deep delicious different difficult dirty dry dull early easy empty enormous equal exact excellent expensive extra fair false famous fast fat final fine flat foolish foreign free fresh friendly full funny gentle giant glad golden good gray great green grumpy happy hard healthy heavy helpful hidden high hollow honest hot huge hungry ill important jealous kind large late lazy light little lonely long loose loud lovely low lucky mad main mean modern narrow nasty natural near neat new nice noisy normal odd official old open orange ordinary pale perfect pink plain pleasant polite poor popular possible pretty private proud public pure purple quick quiet rare raw ready real recent red rich right rough round rude sad safe salty secret serious shallow sharp shiny short shy sick silent silly silver simple slow small smart smooth soft solid sour spare special steep stiff strange strict strong stupid sudden sunny sure surprised sweet tall tame tasty terrible thick thin tidy tight tiny tired tough true ugly unusual urgent useful useless usual warm weak weird wet white whole wide wild wise wonderful wooden wrong yellow young""".split()

NOUNS = """accident actor address adult adventure airplane airport alarm album animal answer ant apartment apple apron arm army arrow artist aunt author baby back bag baker ball balloon banana band bank barn basket bat bath battery beach bean bear beard bed bee bell belt bench bicycle bill bird birthday biscuit blanket block board boat body bone book boot border boss bottle bottom bowl box boy branch brick bridge brother brush bucket building bus bush butterfly button cabin cage cake camel camera camp candle captain car card carpet carrot cart castle cat cave ceiling center chain chair chance chapter cheese chef cherry chest chicken chimney church circle city class clock cloud clown club coach coat coffee coin collar color computer concert cook cookie corner cottage cough country course cousin cow crab cream crow crowd crown cup cupboard curtain customer dance daughter dentist desk dessert diamond diary dictionary dinner doctor dog doll dolphin donkey door dragon drawer dream dress drink driver drum duck eagle ear egg elbow elephant elevator email engine engineer envelope eraser error evening event exam example eye face factory family fan farm farmer father feather fence festival field film finger fire fish flag floor flower flute fly folder foot forest fork fountain fox freezer friend frog fruit game garage garden gate ghost giraffe girl glass glove goal goat goose grandfather grandmother grape grass group guard guest guitar gym hall hammer hand handle harbor hat hawk head heart helmet hen hill hippo hole holiday home honey horse hospital hotel hour house hunter husband idea insect island jacket jar jeep jewel job joke journey judge jug juice jungle kettle key keyboard king kitchen kite kitten knee knife knight ladder lady lake lamb lamp language laptop lawyer leader leaf leg lemon lesson letter library lid light lion list lizard lock lunch machine magazine manager map market mask match meal meeting melon message minute mirror mistake model monkey month moon morning mother motor mountain mouse mouth movie mug muscle museum mushroom nail name napkin neck needle neighbor nephew nest net newspaper night nose note notebook number nurse nut oak ocean office onion orange orchard oven owl owner package page paint painter pan panda paper parcel parent park parrot party passenger password path patient peach pear pen pencil penguin pepper person phone photo piano picture pie pig pillow pilot pipe pirate pizza place planet plant plate player pocket poem poet point police pond pony pool pot potato present president price prince princess printer prize problem program project pumpkin puppy purse puzzle queen question rabbit radio railway rain raincoat rat recipe report restaurant ring river road robot rock roof room rope rose rug ruler salad sandwich school scientist scissors screen sea seal seat secret shadow shark sheep shelf shell ship shirt shoe shop shoulder shovel shower sign singer sink sister skirt sky sled snail snake sock sofa soldier son song soup spider spoon spring squirrel stage stair stamp star station stick stomach stone store storm story stranger street student sugar suit suitcase summer sun supper sweater swing table tablet tail taxi teacher team telephone tent test theater ticket tie tiger timer toe tomato tool tooth towel tower town toy tractor train tray treasure tree triangle truck trumpet tunnel turkey turtle umbrella uncle uniform vase village violin visitor voice wagon waiter wall wallet watch waterfall weekend whale wheel whistle wife wind window wing winter wizard wolf woman wood word worker world worm writer yard year zebra zoo""".split()

MASS_NOUNS = """advice air anger beauty beef bread butter chalk change chocolate cloth corn cotton courage dust energy fear flour food fun furniture glue gold grass hair happiness health help ice information iron jam knowledge leather love luck luggage meat medicine milk money mud music news nonsense oil paint paper peace plastic pork power rain rice salt sand sense silver sleep snow soap space steam sugar sunshine tea thunder time traffic trouble truth water weather wheat wine wool work""".split()

# base, third person, past, participle of the present; regular ones are derived
_IRREGULAR_VERBS = {
    "begin": "began", "bring": "brought", "build": "built", "buy": "bought", "catch": "caught", "choose": "chose", "cut": "cut", "draw": "drew", "drink": "drank", "drive": "drove", "eat": "ate", "feed": "fed", "feel": "felt", "find": "found", "forget": "forgot", "get": "got", "give": "gave", "hear": "heard", "hide": "hid", "hit": "hit", "hold": "held", "keep": "kept", "know": "knew", "leave": "left", "lose": "lost", "make": "made", "meet": "met", "pay": "paid", "put": "put", "read": "read", "ride": "rode", "see": "saw", "sell": "sold", "send": "sent", "shake": "shook", "show": "showed", "steal": "stole", "take": "took", "teach": "taught", "tell": "told", "think": "thought", "throw": "threw", "understand": "understood", "wear": "wore", "win": "won", "write": "wrote",
}  # fmt: skip
_REGULAR_VERBS = """accept add admire answer ask bake borrow call carry change chase check clean climb close collect cook copy count cover cross cry dance deliver describe discover drop enjoy explain fill finish fix follow guess hate help hunt imagine invite join jump kick kill kiss laugh learn like lift listen lock look love mention miss mix move need notice offer open order own pack paint pass pick plan plant play point polish pour prepare press promise protect pull push reach remember remove rent repair repeat return save search share shout smell start stop study surprise talk taste thank touch travel trust try turn use visit wait walk want wash watch whisper wish work worry""".split()


def _past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeou":
        return verb[:-1] + "ied"
    if verb in ("stop", "plan", "drop", "chat"):
        return verb + verb[-1] + "ed"
    return verb + "ed"


def _gerund(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    if verb in ("stop", "plan", "drop", "begin", "cut", "forget", "get", "hit", "put", "win"):
        return verb + verb[-1] + "ing"
    return verb + "ing"


def _third(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeou":
        return verb[:-1] + "ies"
    return verb + "s"


PAST = {verb: _past(verb) for verb in _REGULAR_VERBS} | _IRREGULAR_VERBS
VERBS = sorted(PAST)
GERUND = {verb: _gerund(verb) for verb in VERBS}
THIRD = {verb: _third(verb) for verb in VERBS}

_IRREGULAR_PLURALS = {"child": "children", "foot": "feet", "goose": "geese", "knife": "knives", "leaf": "leaves", "man": "men", "mouse": "mice", "person": "people", "scissors": "scissors", "sheep": "sheep", "shelf": "shelves", "tooth": "teeth", "wife": "wives", "wolf": "wolves", "woman": "women", "fish": "fish", "police": "police", "potato": "potatoes", "tomato": "tomatoes"}  # fmt: skip


def plural(noun: str) -> str:
    """More than one of them."""
    if noun in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[noun]
    return _third(noun) if not noun.endswith("o") else noun + "s"


ADVERBS = """again almost alone already always anyway badly bravely carefully certainly clearly completely correctly currently daily deeply easily especially even exactly finally firmly fortunately gently gladly happily hardly here honestly immediately indeed instead kindly lately later loudly maybe mostly naturally nearly never nicely normally now often once only outside perfectly perhaps politely possibly probably properly quickly quietly quite rarely really recently sadly safely seldom seriously slowly softly sometimes soon still strongly suddenly surely then there today together tomorrow tonight too truly twice upstairs usually very warmly well yesterday yet""".split()

OTHERS = """about above across after against along although among and another any anybody anyone anything around as at away because before behind below beside between both but by despite down during each either else enough every everybody everyone everything everywhere except few for from half hers herself him himself his how however if in inside into itself just least less lot many me mine more most much must myself neither nobody none nor nothing nowhere of off on onto or other ours out over own past rather same several should since so some somebody someone something somewhere such than that their theirs them themselves therefore these they this those though through throughout till to toward under unless until up upon us was we were what whatever when whenever where wherever whether which while who whom whose why with within without would yes yours yourself""".split()

FIRST_NAMES = """Adam Alice Amy Andrew Anna Anton Arthur Ben Betty Bill Bob Bruno Carla Carol Charles Chris Clara Dan Daniel Daisy David Diana Edward Ella Emily Emma Eric Eva Felix Finn Frank Fred George Grace Hannah Harry Helen Henry Ida Ivan Jack James Jane Jenny Jim Joe John Julia Karen Kate Kevin Laura Leo Lily Linda Lisa Louis Lucas Lucy Maria Mark Martha Martin Mary Matt Max Maya Mia Michael Mike Mila Molly Nadia Nancy Nick Nina Noah Nora Oliver Olivia Oscar Otto Pam Patrick Paul Peter Philip Pip Rachel Ralph Richard Rob Robert Robin Rosa Ruby Sam Sandra Sarah Simon Sofia Sophie Steve Susan Ted Theo Thomas Tim Tina Tom Tony Victor Vera Walter Wendy William Zoe""".split()
SURNAMES = """Adams Allen Baker Bell Brown Carter Clark Collins Cook Cooper Davis Evans Fisher Foster Green Hall Harris Hill Hughes Jackson Johnson Jones King Lee Lewis Martin Miller Moore Morgan Parker Price Reed Roberts Robinson Scott Smith Stone Taylor Thompson Turner Walker Ward Watson White Williams Wilson Wood Wright Young""".split()
PLACES = """Africa Amsterdam Asia Athens Australia Austria Berlin Boston Brazil Brussels Cairo California Canada Chicago China Denmark Dublin Egypt England Europe Finland Florida France Geneva Germany Greece Hamburg Helsinki Hungary Iceland India Ireland Italy Japan Kenya Lisbon London Madrid Mexico Milan Montreal Moscow Munich Nairobi Naples Norway Oslo Oxford Paris Peru Poland Portugal Prague Rome Russia Scotland Spain Stockholm Sweden Switzerland Sydney Texas Tokyo Toronto Turkey Venice Vienna Warsaw Zurich""".split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ROOMS = "kitchen|bedroom|bathroom|living room|hall|garage|office|garden|dining room|basement|attic|hallway".split("|")
DEVICES = "light|lights|lamp|television|radio|heating|fan|music|oven|heater|alarm|coffee machine|computer|printer|camera".split("|")
FOODS = "rice|pasta|soup|salad|bread|cheese|pizza|fish|chicken|pancakes|cake|apple pie|ice cream|potatoes|beans|sandwiches|eggs|toast|noodles|a sandwich|an apple|a banana|some fruit|some cake".split("|")
UNITS = "kilometers|miles|meters|grams|kilograms|pounds|liters|cups|inches|feet|hours|minutes|seconds|days|weeks|months|years|pages|steps|degrees|people|students|chairs|boxes|books|tickets|eggs|apples|cars".split("|")
WEATHER = "sunny|cloudy|rainy|windy|foggy|snowy|stormy|cold|warm|hot|wet|dry|cool|icy|mild".split("|")
GAMES = "chess|cards|football|tennis|hockey|basketball|golf|the piano|the guitar|the violin|the drums|the flute".split("|")
