# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""The lexicon: names, kinds, places and things, with what the grammar must know about each."""

from __future__ import annotations

from random import Random

GIRLS = """Mia Lily Anna Rosie Clara Nora Ella Ruby Daisy Hazel Ivy Lucy Molly Sophie Tess Wendy Zoe Alice Bella
Cora Emma Flora Grace Hannah Iris June Kate Luna Maya Nina Olive Penny Sara Tilly Vera Willa Amber Bonnie Celia
Sandra Maria Sarah Mary Emily Sofia Elena Linda Julia Nadia Aisha Yuki Priya Mei Lena Petra Carmen Olga Fatima
Coco Ginger Misty Honey Pearl Snowy Dora Elsie Freya Greta Holly Ida Jenny Kira Laura Mabel Nell Opal Polly Rita Stella Thea Una Violet Yara""".split()
BOYS = """Tom Ben Sam Leo Max Finn Jack Oscar Theo Hugo Noah Peter Milo Felix Henry Arlo Toby Jasper Otto Ned
Adam Bruno Carl David Eddie Frank George Harry Ivan Joel Kai Luke Martin Nico Oliver Paul Quinn Ralph Simon Tim
Alex John James Robert Michael Daniel Lucas Ali Omar Hans Pierre Carlos Juan Ravi Wei Kenji Bob Bill Jim
Whiskers Rex Spot Fluffy Shadow Pip Momo Biscuit Rocky Sparky Buddy Victor Wes Alfie Basil Caleb Dan Eli Fred Gus Hank Isaac Jonas Kurt Liam Mark Nate Owen Rory Sid Walter""".split()
GENDER: dict[str, str] = {**dict.fromkeys(GIRLS, "she"), **dict.fromkeys(BOYS, "he")}

PRONOUNS = {
    "he": {"he": "he", "him": "him", "his": "his", "himself": "himself"},
    "she": {"he": "she", "him": "her", "his": "her", "himself": "herself"},
}

# animal heroes: home, and where they are at ease
ANIMALS = {
    "fox": "a warm den under an old oak",
    "rabbit": "a round burrow on the hillside",
    "mouse": "a tiny hole behind the mill",
    "hedgehog": "a pile of dry leaves by the garden wall",
    "squirrel": "a hollow pine tree",
    "bear": "a dry cave above the stream",
    "badger": "a deep den under the hill",
    "otter": "a cosy holt beside the river",
    "beaver": "a lodge of sticks in the pond",
    "duckling": "a nest among the reeds",
    "frog": "a mossy bank beside the pond",
    "kitten": "a basket in the old barn",
    "puppy": "a wooden kennel on the farm",
    "lamb": "a green meadow behind the farm",
    "owl": "a tall dark fir tree",
    "turtle": "a quiet corner of the lake shore",
    "mole": "a winding tunnel under the meadow",
    "pony": "a small red stable",
    "goat": "a stone hut on the mountain",
    "raccoon": "a hollow log near the creek",
    "cat": "a warm house with a red roof",
    "dog": "a kennel beside the farmhouse",
    "penguin": "a snowy bay by the sea",
    "monkey": "a tall tree in the jungle",
    "elephant": "a green valley by the river",
    "lion": "a sunny plain with tall grass",
    "giraffe": "a grove of tall trees",
    "deer": "a quiet part of the forest",
    "horse": "a big barn on the farm",
    "swan": "a nest beside the lake",
    "bird": "a nest in the apple tree",
    "dinosaur": "a valley full of giant ferns",
    "unicorn": "a meadow behind the rainbow falls",
    "wolf": "a den among the rocks",
    "hamster": "a cosy nest of straw",
    "parrot": "a palm tree by the sea",
    "camel": "a tent at the edge of the desert",
    "tiger": "a shady place among the ferns",
    "zebra": "a wide plain with golden grass",
    "crow": "an old nest above the church",
    "hen": "a small coop behind the farmhouse",
    "rooster": "a wooden house beside the barn",
    "pig": "a warm sty on the farm",
    "cow": "a barn with a red door",
    "sheep": "a fold on the green hill",
    "goose": "a little house by the pond",
    "snail": "a garden full of lettuce",
    "panda": "a forest of bamboo",
    "kangaroo": "a hot red valley",
    "crocodile": "a bend of the slow river",
    "seal": "a cave by the sea",
    "donkey": "a stall beside the mill",
    "duck": "a nest at the edge of the pond",
    "chick": "a warm corner of the barn",
    "ladybug": "a house under the old rose bush",
    "bee": "a hive under the apple trees",
    "butterfly": "a meadow full of flowers",
    "ant": "a nest under the pine trees",
    "hippo": "a pool in the long river",
    "koala": "a tall tree with soft leaves",
    "reindeer": "a snowy forest in the north",
    "polar bear": "a house of ice",
    "seagull": "a nest on the high cliffs",
    "bat": "a dark cave behind the falls",
}
ANIMAL_ELDERS = {
    "Old Owl": "he",
    "Grandfather Toad": "he",
    "Mrs. Badger": "she",
    "Mother Goose": "she",
    "Mr. Heron": "he",
    "Aunt Robin": "she",
    "Grandmother Deer": "she",
    "Uncle Crow": "he",
}
HUMAN_ELDERS = {
    "Grandma": "she",
    "Grandpa": "he",
    "Mrs. Reed": "she",
    "Mr. Brown": "he",
    "Aunt May": "she",
    "Uncle Joe": "he",
    "Mrs. Hill": "she",
    "Mr. Stone": "he",
    "Miss Park": "she",
    "Captain Gray": "he",
}
# heroes of fairy tales: subject pronoun, home
TALE_FOLK = {
    "weaver": ("he", "a small workshop on the market square"),
    "baker": ("he", "a house that smelled of bread"),
    "tailor": ("he", "a narrow house full of cloth"),
    "miller": ("he", "an old mill by the stream"),
    "fisherman": ("he", "a hut beside the sea"),
    "carpenter": ("he", "a house with a big workshop"),
    "gardener": ("she", "a cottage full of flowers"),
    "painter": ("she", "a bright room under the roof"),
    "cook": ("he", "a kitchen in the castle"),
    "clockmaker": ("he", "a shop full of clocks"),
    "teacher": ("she", "a small house beside the school"),
    "nurse": ("she", "a white house near the park"),
    "captain": ("he", "a ship with blue sails"),
    "musician": ("she", "a room above the theater"),
    "magician": ("he", "a wagon with golden stars"),
    "dancer": ("she", "a house with a garden"),
    "postman": ("he", "a yellow house by the road"),
    "grandmother": ("she", "a little house in the woods"),
    "woodcutter": ("he", "a hut deep in the forest"),
    "doctor": ("she", "a house on the hill"),
    "princess": ("she", "a castle with seven towers"),
    "prince": ("he", "a castle on the hill"),
    "king": ("he", "a stone castle by the sea"),
    "queen": ("she", "a white palace"),
    "knight": ("he", "a small fort by the road"),
    "wizard": ("he", "a crooked tower in the woods"),
    "witch": ("she", "a hut at the edge of the woods"),
    "fairy": ("she", "a flower in the royal garden"),
    "giant": ("he", "a huge house above the clouds"),
    "pirate": ("he", "an old ship in the harbor"),
    "astronaut": ("she", "a small spaceship above the Earth"),
    "sailor": ("he", "a little blue boat"),
    "farmer": ("he", "a farm at the end of the road"),
    "shepherd": ("he", "a hut in the high meadow"),
    "inventor": ("she", "a house full of wheels and wires"),
}
HUMAN_HOMES = [
    "a small white house at the end of the lane",
    "a narrow house above the bakery",
    "a stone cottage near the woods",
    "a farmhouse with a blue door",
    "a little house beside the harbor",
    "a tall house on Apple Street",
    "an old mill by the river",
    "a cottage at the foot of the hill",
    "a yellow house across from the school",
    "a flat above the toy shop",
]

SLOTS: dict[str, list[str]] = {
    "trait": "curious kind brave cheerful clever gentle lively patient thoughtful quiet playful honest".split(),
    "color": "red blue green yellow purple orange white silver golden brown".split(),
    "hobby": [
        "drawing pictures",
        "singing songs",
        "climbing trees",
        "collecting smooth stones",
        "watching the clouds",
        "telling jokes",
        "building little boats",
        "looking for bugs",
        "running in the wind",
        "reading by the window",
        "asking questions",
        "whistling tunes",
        "jumping in puddles",
        "picking berries",
        "counting the stars",
    ],
    "treasure": [
        "red ball",
        "silver bell",
        "blue scarf",
        "wooden whistle",
        "green button",
        "little drum",
        "brass key",
        "yellow kite",
        "glass marble",
        "toy boat",
        "paper crown",
        "tiny lantern",
        "striped hat",
        "shell necklace",
        "music box",
        "woolen blanket",
        "leather notebook",
        "copper coin",
    ],
    "toy": [
        "toy train",
        "red wagon",
        "spinning top",
        "wooden horse",
        "box of paints",
        "bouncy ball",
        "set of blocks",
        "shiny scooter",
        "puppet",
        "paper boat",
        "drum",
        "jump rope",
    ],
    "food": [
        "honey cakes",
        "apple pie",
        "berry jam",
        "warm bread",
        "vegetable soup",
        "oat cookies",
        "plum cake",
        "pancakes",
        "cheese rolls",
        "pumpkin soup",
        "cherry tart",
        "nut bread",
    ],
    "pie": ["apple pie", "plum cake", "cherry tart", "nut bread", "berry pie", "honey cake", "cheese pie"],
    "fruit": "apples pears plums cherries blackberries strawberries peaches blueberries".split(),
    "flower": "sunflower daisy tulip rose poppy bluebell lily marigold".split(),
    "outside": [
        "the old bridge",
        "the tall oak",
        "the duck pond",
        "the berry bushes",
        "the stone wall",
        "the hollow log",
        "the windmill",
        "the sandy bank",
        "the mossy rock",
        "the wild garden",
        "the crossroads",
        "the willow tree",
    ],
    "landmark": [
        "the great hill",
        "the silver lake",
        "the dark forest",
        "the quiet valley",
        "the foggy marsh",
        "the high cliffs",
        "the pine woods",
        "the old ruins",
        "the long beach",
        "the wide meadow",
    ],
    "creature": [
        "a baby bird",
        "a small kitten",
        "a lost lamb",
        "a tiny mouse",
        "a young rabbit",
        "a little puppy",
        "a little hedgehog",
        "a gray duckling",
    ],
    "season": "spring summer autumn winter".split(),
    "instrument": "flute drum fiddle violin horn harp".split(),
    "job": "baker gardener fisherman teacher painter farmer tailor carpenter".split(),
    "gem": [
        "a glowing crystal",
        "a round white pearl",
        "a blue gem",
        "a golden shell",
        "a smooth green stone",
    ],
    "town": "Willowby Applefield Stonebridge Maplewood Brightwater Fernhill Oakham Riverside Larkspur".split(),
}

ADJECTIVES = {  # opposites, both ways
    "long": "short",  # before "tall", which is what "short" leads back to
    "big": "small", "hot": "cold", "fast": "slow", "happy": "sad", "light": "dark", "up": "down", "open": "closed",
    "old": "young", "tall": "short", "wet": "dry", "hard": "soft", "full": "empty", "early": "late", "loud": "quiet",
    "rich": "poor", "strong": "weak", "thick": "thin", "clean": "dirty", "deep": "shallow", "wide": "narrow",
    "high": "low", "good": "bad", "day": "night", "left": "right", "near": "far", "first": "last", "win": "lose",
    "begin": "end", "push": "pull", "true": "false", "inside": "outside", "heavy": "lightweight", "sharp": "blunt",
    "sweet": "sour", "smooth": "rough", "brave": "cowardly", "cheap": "expensive", "safe": "dangerous",
    "easy": "difficult", "above": "below", "before": "after", "always": "never", "buy": "sell", "give": "take",
    "laugh": "cry", "love": "hate", "remember": "forget", "arrive": "leave", "asleep": "awake", "same": "different",
    "front": "back", "in": "out", "on": "off", "yes": "no", "more": "less", "many": "few", "polite": "rude",
    "simple": "complicated", "straight": "crooked", "tight": "loose", "victory": "defeat", "friend": "enemy",
    "question": "answer", "north": "south", "east": "west", "summer": "winter", "top": "bottom", "war": "peace",
    "start": "stop", "male": "female", "possible": "impossible", "visible": "invisible", "healthy": "sick",
    "accept": "refuse", "float": "sink", "increase": "decrease", "ancient": "modern", "noisy": "silent",
    "black": "white", "alive": "dead", "bright": "dim", "lost": "found", "winner": "loser", "entrance": "exit",
    "tame": "wild", "rare": "common", "raw": "cooked", "beautiful": "ugly", "beginning": "finish", "inner": "outer",
    "major": "minor", "maximum": "minimum", "ripe": "unripe", "fresh": "stale", "honest": "dishonest", "legal": "illegal",
    "lucky": "unlucky", "public": "private", "single": "double", "upper": "lower", "vertical": "horizontal", "attack": "defend",
    "borrow": "lend", "build": "destroy", "freeze": "melt", "appear": "disappear", "agree": "disagree", "succeed": "fail",
    "teach": "learn", "hero": "villain", "sunrise": "sunset", "optimist": "pessimist", "plural": "singular", "wise": "foolish",
    "useful": "useless", "fair": "unfair", "generous": "stingy", "lazy": "diligent", "boring": "interesting", "calm": "nervous",
    "hope": "despair", "credit": "debit", "expand": "shrink", "export": "import", "forward": "backward", "guilty": "innocent",
}  # fmt: skip

PLURALS = {
    "cat": "cats", "dog": "dogs", "house": "houses", "tree": "trees", "book": "books", "car": "cars", "bird": "birds",
    "apple": "apples", "river": "rivers", "song": "songs", "star": "stars", "hat": "hats", "boat": "boats",
    "box": "boxes", "fox": "foxes", "bus": "buses", "glass": "glasses", "dish": "dishes", "brush": "brushes",
    "watch": "watches", "peach": "peaches", "church": "churches", "bench": "benches", "class": "classes",
    "dress": "dresses", "tax": "taxes", "wish": "wishes", "lunch": "lunches", "match": "matches", "inch": "inches",
    "baby": "babies", "city": "cities", "lady": "ladies", "story": "stories", "cherry": "cherries", "berry": "berries",
    "pony": "ponies", "puppy": "puppies", "family": "families", "country": "countries", "party": "parties",
    "butterfly": "butterflies", "fly": "flies", "daisy": "daisies", "toy": "toys", "boy": "boys", "day": "days",
    "key": "keys", "monkey": "monkeys", "donkey": "donkeys", "leaf": "leaves", "wolf": "wolves", "knife": "knives",
    "life": "lives", "shelf": "shelves", "half": "halves", "loaf": "loaves", "thief": "thieves", "wife": "wives",
    "calf": "calves", "scarf": "scarves", "roof": "roofs", "potato": "potatoes", "tomato": "tomatoes",
    "hero": "heroes", "echo": "echoes", "piano": "pianos", "photo": "photos", "child": "children", "man": "men",
    "woman": "women", "mouse": "mice", "goose": "geese", "foot": "feet", "tooth": "teeth", "ox": "oxen",
    "person": "people", "sheep": "sheep", "fish": "fish", "deer": "deer", "louse": "lice", "table": "tables",
    "chair": "chairs", "window": "windows", "door": "doors", "flower": "flowers", "garden": "gardens",
    "school": "schools", "teacher": "teachers", "friend": "friends", "letter": "letters", "number": "numbers",
    "spoon": "spoons", "cup": "cups", "bottle": "bottles", "hand": "hands", "eye": "eyes", "ear": "ears",
    "cow": "cows", "pig": "pigs", "horse": "horses", "duck": "ducks", "lion": "lions", "tiger": "tigers",
}  # fmt: skip

NOUNS = """apple ball bread bridge candle castle chair cloud coat corn cup desk door dragon drum egg feather flag
flower forest garden glass guitar hammer hat honey horse island jacket kettle key kite ladder lamp leaf lemon letter
map milk mirror moon mountain needle nest ocean onion orange paper pencil piano pillow plate rain ribbon river road
rope rose salt sand scarf ship shoe silver snow soap spoon star stone sugar table tent tiger tower train tree violin
wagon wall water wheel wind window wolf wood wool yarn zebra""".split()

_ONSETS = "b br c ch d dr f fl g gr h j k kl l m n p pl r s sh sk st t tr v w z".split()
_VOWELS = "a e i o u ai ee oo".split()
_CODAS = ["", "", "n", "l", "r", "m", "x", "sk", "nd", "th", "p", "t"]


_STARTS = """al an ar bel bri cor cle dan del el em fer gal gar gwen hel hor is jo jul kal lan leo mar mel mor nor oct or per
phil quin ros sal ser sol syl thad tib ul val vic vir win xan yor zeph ag am bar cas des ev flor gus hum""".split()
_MIDDLES = [
    "",
    "a",
    "e",
    "i",
    "o",
    "el",
    "an",
    "er",
    "in",
    "on",
    "al",
    "is",
    "or",
    "ni",
    "ti",
    "mi",
    "phi",
    "que",
    "bri",
    "sto",
]
_ENDS = "us ius ia ina elle ette ald bert ard wyn dine ora eus as os ie a o y ix en iel vin lyn more ton wick ric thy".split()

# Names for the evaluation: not in the lexicon, and never invented, so that no training text can have them.
RESERVED_NAMES: dict[str, str] = {
    **dict.fromkeys(
        "Josephine Clementine Guinevere Penelope Octavia Eleanor Gwendolyn Rosalind Ophelia Winifred".split(),
        "she",
    ),
    **dict.fromkeys(
        "Thaddeus Cornelius Archibald Augustus Ferdinand Humphrey Ambrose Sylvester Percival Ignatius".split(),
        "he",
    ),
}
_RESERVED = frozenset(name.lower() for name in RESERVED_NAMES)


def invented_word(rng: Random) -> str:
    """A word that means nothing: it teaches copying, and that not every name is known.

    Some are made of syllables, some like names of the book shelf, some of any letters.
    """
    draw = rng.random()
    if draw < 0.5:
        syllables = rng.choice((1, 2, 2, 3))
        word = "".join(
            rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables)
        )
    elif draw < 0.85:
        word = rng.choice(_STARTS) + rng.choice(_MIDDLES) + rng.choice(_ENDS)
    else:
        word = "".join(rng.choice("abcdefghijklmnopqrstuvwxyzaeioutnrsl") for _ in range(rng.randint(3, 9)))
    return word if word not in _RESERVED else invented_word(rng)


def first_name(rng: Random) -> str:
    """A first name: mostly of the lexicon, sometimes invented."""
    return rng.choice(GIRLS + BOYS) if rng.random() < 0.85 else invented_word(rng).capitalize()
