# ruff: noqa: E501, SIM905 - word lists read better whole
"""Words by their sort, for texts in which everything that is named makes sense: clothes are worn and cakes are baked."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import lexicon
from .tasks import DAYS, MONTHS, in_words
from .words import RESERVED_NAMES, invented_word

_GIRLS = "Hanna Ella Lucy Dana Ines Paula Nora Mia Greta Amelie Agnes Ruth Lena Clara Bella Marta Zoe Ida Elsa Freya Tilda Vera Iris Olga Petra Heidi Maja Jana Sofia Emilia Rosa Carmen Pilar Ines Lucia Giulia Bianca Chiara Leila Aisha Fatima Amina Zahra Yasmin Mei Yuki Sakura Priya Anjali Lakshmi Noor Salma Nadia Irina Katya Tanja Milena Ivana Zuzana Agata Kasia Edith Mabel Doris Hazel Ivy Pearl Daisy Poppy Violet Martha Edna Gladys Sally Molly Polly Betty Peggy Wendy Tessa Carol Joan Karen Linda Susan Helen Diane Gwen Maeve Fiona Isla Orla Kirsty Astrid Sigrid Ingrid Solveig Liv Signe Kirsten Annika Lotte Femke Saskia Anouk Celine Margot Elodie Colette Odette Esther Naomi Miriam Judith Rachel Deborah Tamar Kiara Imani Zuri Amara".split()
_BOYS = "Peter Fred Karim Marco Yusuf Piet Sam Gustav Anton Jonas Bertil Fritz Mateo Bruno Oscar Henry Walter Victor Arthur Edgar Ralph Stanley Cedric Rupert Gilbert Basil Cyril Duncan Angus Callum Ewan Rory Declan Liam Sean Patrick Finn Lars Sven Bjorn Nils Olaf Erik Magnus Henrik Jens Klaus Dieter Uwe Ralf Stefan Matthias Lukas Jakob Emil Felix Moritz Pavel Milan Ivan Boris Igor Dmitri Oleg Viktor Yuri Andrei Radu Bogdan Stavros Nikos Kostas Luca Paolo Enzo Dario Pedro Pablo Carlos Diego Miguel Javier Rafael Tomas Hugo Louis Marcel Pierre Henri Olivier Omar Ali Hassan Ibrahim Khalid Tariq Rashid Ahmed Samir Farid Arjun Ravi Sanjay Vikram Amit Kenji Hiro Takeshi Wei Jun Ming Kofi Kwame Jabari Tendai Sipho Noah Adam Simon Daniel David Aaron Caleb Ezra Toby Archie Alfie Freddie Billy Charlie Harry Eddie Joey Danny Benny Frank George Albert Harold".split()
_PETNAMES = "Coco Minka Rex Bello Tiger Luna Milo Toffee Biscuit Pepper Ginger Snowball Rusty Patch Buster Lucky Socks Pickles Muffin Daisy Whiskers Shadow Rocky Ziggy Mopsy Oreo Peanut Waffle Scout Bandit Felix Misty Smokey Nugget Pip Fluff Bonnie Ruby Hercules Caesar".split()
_KIN = "mother father sister brother aunt uncle grandmother grandfather cousin neighbor teacher friend daughter son niece nephew wife husband boss colleague".split()
_PETS = "dog cat parrot rabbit hamster pony goldfish donkey goat hen duck tortoise guinea pig canary horse kitten puppy lamb mouse".replace(
    "guinea pig", "guinea-pig"
).split()
_CLOTHES = "scarf coat jacket hat cap sweater shirt dress skirt raincoat pullover glove sock belt tie vest hood blouse cardigan apron bathrobe swimsuit helmet boot sandal slipper shoe".split()
_THINGS = "umbrella bicycle watch camera lamp kettle guitar book suitcase backpack wallet purse phone key ring ladder bucket basket bottle teapot mirror clock blanket pillow tent rucksack notebook pencil pen ruler letter parcel ticket map compass torch radio vase candle picture stool drum kite ball doll puzzle sledge skateboard scooter racket bat necklace bracelet brooch medal flute violin trumpet calculator keyboard tablet laptop charger battery cushion carpet curtain jug mug plate bowl spoon frying-pan saucepan toaster mixer drill hammer saw screwdriver shovel rake hose wheelbarrow flowerpot chair table desk sofa bench wardrobe shelf chest bookcase".split()
_TOYS = "doll teddy ball kite puzzle train drum robot yo-yo spinning-top marble rocking-horse dollhouse skipping-rope scooter".split()
_FURNITURE = "table chair sofa bed desk shelf wardrobe armchair bench stool cupboard lamp mirror bookcase rug piano chest stove fridge cradle".split()
_TOOLS = "hammer saw drill ladder shovel rake axe screwdriver wrench wheelbarrow paintbrush lawn-mower hose spade chainsaw".split()
_DISHES = "tomato soup|pea soup|onion soup|chicken soup|pumpkin soup|fish and chips|lasagna|pancakes|potato salad|fried eggs|apple pie|cherry cake|carrot cake|cheesecake|chocolate cake|roast chicken|meatballs|spaghetti|mushroom risotto|vegetable curry|bean stew|goulash|dumplings|omelette|pizza|noodles|rice with beans|fish pie|baked potatoes|lentil soup|fruit salad|rice pudding|waffles|ginger biscuits|lemon tart|plum cake|stuffed peppers|fried fish|cheese sandwiches|pasta with pesto".split(
    "|"
)
_INGREDIENTS = (
    "flour sugar butter milk cream rice salt honey cheese oil cocoa yogurt oats water vinegar".split()
)
_FRUITS = "apples pears plums cherries oranges lemons bananas peaches apricots strawberries raspberries grapes melons figs mangoes kiwis blueberries pineapples".split()
_VEGETABLES = "potatoes carrots onions tomatoes peas beans cucumbers peppers leeks mushrooms beetroots pumpkins radishes turnips lettuces cabbages courgettes aubergines".split()
_GROCERIES = "milk bread cheese butter eggs rice flour sugar salt honey jam tea coffee ham yogurt oil pasta soap candles matches batteries toothpaste shampoo tissues apples bananas lemons onions garlic carrots fish chicken sausages biscuits chocolate cereal nuts raisins mustard ketchup juice water napkins".split()
_CARRIED = "a rope|a torch|a knife|some bread|a map|a compass|a blanket|a whistle|a bottle of water|two apples|an old book|a lantern|a hammer|a ladder|a bag of nails|a fishing rod|a basket of eggs|three letters|a red ribbon|a spare tire|a pair of boots|a camera|a small mirror|a box of matches|a tent|a cake|a bunch of flowers|a violin case|a brown envelope|a bucket of paint|a bird cage|a pillow|a teddy bear|a loaf of bread|a flask of tea|a raincoat|a silver coin|an umbrella|a bag of flour|a pot of honey".split(
    "|"
)
_DRINKS = "tea coffee milk lemonade cocoa apple-juice water cider orange-juice lemon-tea".replace(
    "-", "_"
).split()
_PLACES = "museum library market harbor station bakery church castle zoo park school stadium theater cinema swimming-pool hospital post-office town-hall bank pharmacy bookshop bridge lighthouse airport playground beach lake forest farm garage hotel restaurant cafe gym campsite vineyard mill quarry fire-station petrol-station car-park".replace(
    "-", "_"
).split()
_ROOMS = "kitchen cellar attic bathroom bedroom hall garage living_room dining_room study pantry guest_room laundry_room workshop nursery conservatory".split()
_SPOTS = "under the bed|behind the sofa|on the windowsill|in the drawer|under the doormat|on top of the fridge|next to the stove|in the shed|behind the curtain|in the glove compartment|on the back seat|in the blue box|under the stairs|on the kitchen table|behind the clock|in the left pocket|in a tin|beside the front door|under the apple tree|on the balcony|between two books|on the bus|in the waiting room|at the bakery|on the train|in a flower pot|in the piano|under the bench|in the top drawer|behind the barn".split(
    "|"
)
_STREETS = "Mill Lane|Church Street|Station Road|Park Avenue|High Street|Elm Street|River Road|King Street|Garden Lane|Bridge Street|Castle Hill|Harbor Road|Market Square|Green Lane|School Lane|Oak Avenue|Rose Street|North Road|Chapel Street|Windmill Road|Queen Street|Forest Road|Tower Street|Cherry Lane|Old Post Road".split(
    "|"
)
_COUNTRIES = "Norway Sweden Finland Denmark Iceland Ireland Scotland Wales England France Spain Portugal Italy Greece Turkey Poland Hungary Austria Switzerland Germany Belgium Holland Croatia Romania Bulgaria Russia Ukraine Egypt Morocco Tunisia Kenya Ghana Nigeria India Nepal China Japan Korea Vietnam Thailand Australia Canada Mexico Cuba Brazil Peru Chile Argentina".split()
_JOBS = "nurse plumber baker teacher carpenter electrician gardener dentist vet pilot cook waiter postman firefighter farmer fisherman tailor hairdresser librarian mechanic painter photographer journalist lawyer judge singer dancer engineer architect bus_driver shepherd butcher florist optician programmer translator secretary policeman clown cleaner shoemaker beekeeper blacksmith".split()
_TRADES = "plumber electrician carpenter painter gardener chimney_sweep locksmith roofer cleaner vet doctor postman builder technician window_cleaner piano_tuner baker milkman delivery_man".split()
_SPORTS = "football tennis hockey basketball volleyball handball chess swimming badminton rugby cricket golf judo fencing table_tennis rowing skating climbing".split()
_GAMES = "football tennis hockey basketball volleyball handball chess badminton rugby cricket golf cards checkers table_tennis hide-and-seek dominoes baseball".split()
_INSTRUMENTS = "piano violin guitar flute trumpet cello drums clarinet harp saxophone trombone accordion organ oboe tuba banjo".split()
_TREES = "oak birch pine apple_tree cherry_tree willow maple chestnut fir plum_tree pear_tree walnut_tree elm poplar".split()
_FLOWERS = "roses tulips daisies lilies sunflowers violets poppies daffodils carnations orchids geraniums irises marigolds peonies dahlias snowdrops".split()
_ANIMALS = "sheep cows goats pigs hens ducks geese horses donkeys rabbits ponies cats bees swans turkeys llamas".split()
_WILD = "fox owl hedgehog deer badger squirrel crow heron beaver otter wolf bear eagle hare woodpecker stork falcon lynx swan frog".split()
_VEHICLES = (
    "bus train tram ferry taxi car bicycle plane boat van truck motorbike subway tractor coach".split()
)
_PUBLIC = "bus train tram ferry coach plane shuttle boat".split()
_SUBJECTS = "history music geography biology chemistry physics English French art sports mathematics drama Latin religion computer_science".split()
_MATERIALS = "wood glass gold silver paper wool stone leather silk plastic iron copper clay cotton straw marble tin".split()
_ACHES = "knee back tooth head shoulder ankle ear wrist foot elbow throat stomach hip thumb".split()
_WEATHERS = "sunny rainy cloudy foggy windy snowy stormy icy warm cold mild wet hot dry".split()
_ANGRY = "tired|happy|hungry|sad|angry|proud|nervous|bored|cold|frightened|surprised|sleepy|thirsty|excited|lonely|jealous|worried|embarrassed".split(
    "|"
)
_BOOKS = "Treasure Island|The Lost Whale|Winter Birds|The Old Mill|Night Train|A Garden in Spring|The Silver Key|Seven Brothers|The Blue Door|Stories from the Sea|The Last Lighthouse|Paper Boats|The Clockmaker|Under the Bridge|Letters from Peru|Moon over Venice|The Glass Mountain|Red Shoes|The Baker's Dog|Summer of Storms".split(
    "|"
)
_REASONS = "the road was icy|the alarm clock did not ring|it was raining|the bus had broken down|there was too much snow|the key was lost|the bridge was closed|the driver was ill|the power was off|the baby was crying|the water was too cold|the shop had no bread|the train was full|the wind was too strong|the teacher was ill|a tree lay on the tracks|the engine was too hot|the tickets were sold out|the lights went out|the dog had hidden the shoes|the milk was sour|the heating was broken".split(
    "|"
)
_CLOSED = "the boiler is being repaired|the roof is leaking|we are on holiday|the staff are ill|of a wedding|of a burst pipe|the floor is being painted|of the public holiday|the new shelves are being built|of heavy snow|we are moving|the pool is being cleaned".split(
    "|"
)
_HOURS = "one two three four five six seven eight nine ten eleven twelve".split()
_GROUPS = "the fire brigade|the choir|the school band|the chess club|the town council|the football team|the hiking club|the theater group|the book club|class 4b|the scouts|the village women|the pensioners|the rowing club".split(
    "|"
)


def _time(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.35:
        return rng.choice(_HOURS)
    if draw < 0.5:
        return f"half past {rng.choice(_HOURS)}"
    if draw < 0.6:
        return f"{rng.choice(_HOURS)} o'clock"
    if draw < 0.68:
        return f"a quarter {rng.choice(('to', 'past'))} {rng.choice(_HOURS)}"
    if draw < 0.78:
        return f"{rng.randint(1, 12)} {rng.choice(('am', 'pm'))}"
    return f"{rng.randint(6, 23)}:{rng.choice(('00', '05', '10', '15', '20', '30', '40', '45', '50'))}"


def _count(rng: Random, low: int, high: int) -> str:
    number = rng.randint(low, high)
    return in_words(number) if rng.random() < 0.6 else str(number)


def _few(rng: Random) -> str:
    return _count(rng, 2, 12)


def _name(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.8:
        return rng.choice(GIRLS + BOYS)
    return rng.choice(lexicon.FIRST_NAMES) if draw < 0.93 else invented_word(rng).capitalize()


def _city(rng: Random) -> str:
    return rng.choice(lexicon.CITIES) if rng.random() < 0.9 else rng.choice(lexicon.TWO_WORD_CITIES)


GIRLS = sorted(set(_GIRLS) - set(RESERVED_NAMES))
BOYS = sorted(set(_BOYS) - set(RESERVED_NAMES))
_LISTS: dict[str, list[str]] = {
    "girl": GIRLS, "boy": BOYS, "petname": _PETNAMES, "kin": _KIN, "pet": _PETS, "clothes": _CLOTHES, "thing": _THINGS, "toy": _TOYS, "furniture": _FURNITURE, "tool": _TOOLS, "dish": _DISHES, "stuff": _INGREDIENTS, "fruits": _FRUITS, "vegs": _VEGETABLES, "goods": _GROCERIES, "carried": _CARRIED, "drink": _DRINKS, "place": _PLACES, "room": _ROOMS, "spot": _SPOTS, "street": _STREETS, "country": _COUNTRIES, "job": _JOBS, "trade": _TRADES,
    "sport": _SPORTS, "game": _GAMES, "instrument": _INSTRUMENTS, "tree": _TREES, "flowers": _FLOWERS, "animals": _ANIMALS, "wild": _WILD, "vehicle": _VEHICLES, "public": _PUBLIC, "subject": _SUBJECTS, "material": _MATERIALS, "ache": _ACHES, "weather": _WEATHERS, "feeling": _ANGRY, "book": _BOOKS, "reason": _REASONS, "closed": _CLOSED, "day": DAYS, "days": [f"{d}s" for d in DAYS], "month": MONTHS, "color": lexicon.COLORS, "sur": lexicon.SURNAMES, "surs": [f"{s}s" for s in lexicon.SURNAMES if s[-1] not in "sxz"], "language": lexicon.LANGUAGES, "cur": "euros dollars pounds".split(), "group": _GROUPS,
}  # fmt: skip
_DRAWN: dict[str, Callable[[Random], str]] = {
    "name": _name, "city": _city, "time": _time, "few": _few, "total": lambda r: _count(r, 5, 12), "part": lambda r: _count(r, 2, 4), "num": lambda r: str(r.choice((r.randint(2, 30), r.randint(10, 99)))), "big": lambda r: str(r.choice((r.randint(100, 999), 10 * r.randint(10, 90), 100 * r.randint(1, 90)))), "price": lambda r: str(r.choice((r.randint(2, 60), 5 * r.randint(2, 60), 10 * r.randint(5, 90)))), "year": lambda r: str(r.randint(1780, 2024)), "phone": lambda r: str(r.randint(10000, 999999)), "roomno": lambda r: str(r.randint(1, 420)), "date": lambda r: f"{r.randint(1, 28)} {r.choice(MONTHS)}",
}  # fmt: skip


class Scene(dict[str, str]):
    """The slots of one text, each drawn when it is first asked for, and no two alike: ``name``, ``name2``, …"""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.rng = rng

    def __missing__(self, slot: str) -> str:
        sort = slot.rstrip("0123456789")
        rng = self.rng
        while True:
            drawn = rng.choice(_LISTS[sort]) if sort in _LISTS else _DRAWN[sort](rng)
            drawn = drawn.replace("_", " ")
            if drawn not in self.values():
                self[slot] = drawn
                return drawn
