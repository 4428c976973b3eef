# ruff: noqa: E501 - lines of text and word lists read better whole
"""Things of a kind: what belongs on a list of animals that fly, of what one takes to school, of words with b."""

from __future__ import annotations

from random import Random

from .extras import LISTS
from .tasks import DAYS, MONTHS, in_words
from .wider import _FOUND

# kind (as it stands after "name three"): its members, separated by commas
_KINDS = """animals that can fly: bird, bee, bat, butterfly, owl, eagle|animals that live in water: fish, whale, shark, crab, dolphin, seal|animals with four legs: dog, cat, horse, cow, sheep, lion|farm animals: cow, pig, hen, sheep, horse, goat|wild animals: lion, bear, wolf, fox, tiger, elephant|pets: dog, cat, hamster, rabbit, parrot, goldfish|zoo animals: lion, elephant, giraffe, zebra, monkey, bear
animals that lay eggs: hen, duck, turtle, snake, ostrich|animals with fur: cat, dog, bear, rabbit, fox|animals with wings: bird, bee, bat, butterfly, owl|forest animals: fox, deer, owl, squirrel, wolf|sea animals: whale, shark, crab, octopus, seal|big animals: elephant, whale, giraffe, hippo, bear|small animals: mouse, ant, bee, frog, ladybug|animals of Africa: lion, elephant, zebra, giraffe, hippo|reptiles: snake, lizard, turtle, crocodile|mammals: dog, whale, bat, horse, mouse, cow|birds that cannot fly: penguin, ostrich, kiwi, emu|baby animals: puppy, kitten, calf, lamb, chick, foal|animals with a tail: dog, cat, cow, mouse, monkey
red things: tomato, strawberry, blood, fire truck, cherry|green things: grass, frog, leaf, cucumber, lime|yellow things: sun, banana, lemon, duckling, corn|white things: snow, milk, sugar, salt, cotton|black things: coal, crow, night, tire|round things: ball, coin, wheel, plate, orange, globe|soft things: pillow, blanket, teddy bear, wool, cotton|hard things: stone, iron, wood, nut, diamond|cold things: ice, snow, ice cream, winter|hot things: fire, sun, oven, tea, soup|sweet things: sugar, honey, cake, candy, chocolate|sour things: lemon, vinegar, lime, pickle|things made of wood: table, chair, door, pencil, boat|things made of glass: window, bottle, vase, lamp, mirror|things made of metal: key, coin, nail, car, fork|things made of paper: book, newspaper, letter, map, envelope|things with wheels: car, bike, bus, train, cart|things that fly: bird, plane, kite, bee, balloon|things that float: boat, wood, ball, duck|sharp things: knife, scissors, needle, saw, thorn|heavy things: stone, elephant, car, piano, anvil|light things: feather, paper, leaf, balloon|things you can read: book, newspaper, letter, sign, magazine|things you can wear: hat, coat, shirt, shoes, gloves, scarf|things you can eat: bread, apple, cheese, soup, cake|things you can drink: water, milk, juice, tea, coffee|things that are cold: ice, snow, winter, ice cream
drinks: water, milk, tea, coffee, juice, lemonade|hot drinks: tea, coffee, cocoa, hot milk|foods: bread, cheese, rice, soup, pasta, eggs|breakfast foods: bread, eggs, butter, jam, cereal|desserts: cake, pudding, ice cream, pie|spices: salt, pepper, cinnamon, ginger, paprika|herbs: basil, parsley, mint, thyme|nuts: walnut, hazelnut, almond, peanut|berries: strawberry, blueberry, raspberry, blackberry|citrus fruits: orange, lemon, lime, grapefruit|dairy products: milk, cheese, butter, yogurt, cream|pizza toppings: cheese, tomato, ham, mushrooms, olives|soups: tomato soup, onion soup, chicken soup, bean soup|kinds of bread: rye bread, white bread, baguette, toast|snacks: nuts, chips, apple, cookies|ingredients for a cake: flour, eggs, sugar, butter, milk|ingredients of a salad: lettuce, tomato, cucumber, onion
vehicles: car, bus, train, bike, truck, boat, plane|boats: canoe, ferry, raft, sailboat|clothes: shirt, trousers, coat, hat, socks, dress, scarf|winter clothes: coat, scarf, gloves, hat, boots|summer clothes: shorts, T-shirt, sandals, hat|shoes: boots, sandals, slippers, sneakers|furniture: table, chair, bed, sofa, shelf, desk|pieces of furniture: table, chair, bed, sofa, shelf, desk|kitchen tools: knife, spoon, pan, pot, whisk|kitchen things: pot, pan, knife, spoon, fork|garden tools: rake, shovel, spade, hose|toys: doll, ball, teddy bear, kite, puzzle, blocks|games: chess, cards, tag, hide and seek, checkers|board games: chess, checkers, ludo, go|sports: football, tennis, swimming, running, skiing, hockey|ball games: football, tennis, basketball, handball, golf|winter sports: skiing, skating, sledding, ice hockey|water sports: swimming, sailing, diving, surfing, rowing|hobbies: reading, painting, cooking, fishing, dancing, chess|musical instruments: piano, guitar, violin, drum, flute, trumpet|instruments with strings: violin, guitar, cello, harp|string instruments: violin, guitar, cello, harp|school subjects: math, history, music, art, biology, geography|rooms of a house: kitchen, bedroom, bathroom, living room, hall, cellar|rooms in a house: kitchen, bedroom, bathroom, living room, hall|parts of the body: head, arm, leg, hand, foot, nose|body parts: head, arm, leg, hand, foot, nose|parts of the face: eyes, nose, mouth, ears, chin|parts of a tree: root, trunk, branch, leaf|parts of a plant: root, stem, leaf, flower|parts of a car: engine, wheel, door, seat, brake|parts of a bike: wheel, saddle, chain, pedal|parts of a house: roof, wall, door, window|senses: sight, hearing, smell, taste, touch|family members: mother, father, sister, brother, uncle, aunt|members of a family: mother, father, sister, brother, grandmother
boys' names: Tom, Ben, Max, Leo, Jack, Paul|girls' names: Anna, Emma, Lily, Mia, Clara, Julia|names for a cat: Minka, Tiger, Luna, Milo|names for a dog: Bello, Rex, Luna, Max|names: Anna, Tom, Emma, Ben, Clara|European countries: France, Germany, Italy, Spain, Poland, Greece|countries in Europe: France, Germany, Italy, Spain, Poland, Greece|countries in Asia: China, Japan, India, Thailand, Vietnam|countries in Africa: Egypt, Kenya, Morocco, Ghana, Nigeria|African countries: Egypt, Kenya, Morocco, Ghana, Nigeria|Asian countries: China, Japan, India, Thailand, Vietnam|countries in South America: Brazil, Chile, Peru, Argentina|capitals: Paris, London, Rome, Berlin, Madrid, Vienna|European capitals: Paris, London, Rome, Berlin, Madrid, Vienna|big cities: London, Tokyo, New York, Paris, Cairo|rivers: Nile, Amazon, Danube, Rhine, Thames|oceans: Pacific, Atlantic, Indian Ocean, Arctic Ocean|mountains: Everest, Mont Blanc, Kilimanjaro, Matterhorn|islands: Iceland, Cuba, Sicily, Madagascar|languages: English, French, German, Spanish, Italian, Chinese|metals: gold, silver, iron, copper, tin|materials: wood, glass, metal, paper, stone|gases: oxygen, hydrogen, helium, nitrogen|trees: oak, pine, birch, maple, willow|fruit trees: apple tree, pear tree, cherry tree, plum tree|plants: rose, tulip, oak, grass, fern|spring flowers: tulip, daffodil, crocus, primrose|summer months: June, July, August|winter months: December, January, February|spring months: March, April, May|autumn months: September, October, November|days of the weekend: Saturday, Sunday|weekend days: Saturday, Sunday|workdays: Monday, Tuesday, Wednesday, Thursday, Friday|months with 31 days: January, March, May, July, August|months with 30 days: April, June, September, November|kinds of weather: sun, rain, snow, wind, fog, storm|feelings: joy, anger, fear, love, sadness|emotions: joy, anger, fear, love, sadness|good wishes: good luck, get well soon, happy birthday|greetings: hello, hi, good morning, good evening|ways to say hello: hi, good morning, good day, hey|polite words: please, thank you, sorry, excuse me|buildings: house, school, church, castle, tower, hospital|shops: bakery, butcher, bookshop, pharmacy|places in a town: school, church, market, park, library|professions: teacher, doctor, baker, farmer, pilot, nurse|people who work in a hospital: doctor, nurse, surgeon|fairy tale figures: witch, king, princess, dragon, giant|prime numbers: 2, 3, 5, 7, 11, 13|vowels: a, e, i, o, u|letters: a, b, c, d, e|words that rhyme with cat: hat, bat, mat, rat|words that rhyme with tree: bee, sea, knee, free|synonyms for happy: glad, cheerful, joyful, merry|synonyms for big: large, huge, great, giant|adjectives: big, small, old, new, happy, green|verbs: run, eat, sleep, read, sing, write|nouns: house, dog, tree, book, car|punctuation marks: comma, period, colon, question mark|primary colors: red, blue, yellow|colors of the rainbow: red, orange, yellow, green, blue, indigo, violet|warm colors: red, orange, yellow|dark colors: black, brown, navy, purple|coins: cent, penny, dime, euro|currencies: euro, dollar, pound, yen, franc|shapes with corners: square, triangle, rectangle, hexagon|dances: waltz, tango, ballet, salsa|dogs: poodle, beagle, collie, terrier|kinds of dogs: poodle, beagle, collie, terrier|things in space: sun, moon, star, planet, comet|holidays: Christmas, Easter, New Year, Halloween|meals: breakfast, lunch, dinner|meals of the day: breakfast, lunch, dinner|cutlery: knife, fork, spoon|chores: sweep the floor, wash the dishes, make the bed, water the plants|good habits: sleep enough, drink water, be kind, read a book|ways to travel: by train, by car, by bike, by plane, on foot|reasons to smile: a friend, a song, a sunny day|things that make you happy: music, friends, sunshine, a good book|gifts: a book, flowers, a game, a scarf|presents for a child: a ball, a book, a puzzle, a doll|presents for my mother: flowers, a book, chocolate, a scarf|activities for a rainy day: read a book, bake a cake, play cards, paint a picture|things to do on a rainy day: read a book, bake a cake, play cards, paint a picture|things to do in summer: swim, eat ice cream, ride a bike, go camping|things to do in winter: ski, drink cocoa, build a snowman, skate""".replace("\n", "|")  # fmt: skip
_PACK = """satchel: books, pencils, a ruler, paper, a lunch box|suitcase: shirts, socks, a toothbrush, shoes, trousers|picnic basket: bread, cheese, apples, water, a blanket|first aid kit: bandages, scissors, plasters, gloves|beach bag: a towel, sunscreen, water, a hat, sunglasses|toolbox: a hammer, nails, a saw, a screwdriver|backpack for a hike: water, a map, a snack, a jacket|lunch box: a sandwich, an apple, nuts, water|handbag: keys, a phone, a wallet, tissues|sports bag: shoes, a towel, a shirt, water|tent trip: a tent, a sleeping bag, a torch, matches|trip to the zoo: water, snacks, a camera, a hat|birthday party: a cake, candles, balloons, music|breakfast table: bread, butter, jam, tea|salad: lettuce, tomatoes, cucumbers, oil|fruit salad: apples, bananas, oranges, grapes|baby bag: diapers, a bottle, wipes, a toy|pencil case: pencils, an eraser, a pen, a ruler|sewing box: needles, thread, buttons, scissors|winter trip: a coat, gloves, a scarf, boots"""
_ACTIVITIES = "packing a $b|getting a $b ready|preparing a $b|filling a $b"


def _read(text: str) -> dict[str, list[str]]:
    rows = (row.split(": ", 1) for row in text.replace("\n", "|").split("|") if row)
    return {kind: items.split(", ") for kind, items in rows}


KINDS: dict[str, list[str]] = {
    **{k: v for k, v in LISTS.items() if k not in ("even numbers", "odd numbers")},
    **_read(_KINDS),
}
PACKS: dict[str, list[str]] = _read(_PACK)
WHOLE_KINDS = {"seasons": "of the year", "days": "of the week", "months": "of the year", "planets": "of the solar system", "continents": "of the world", "senses": "of people", "vowels": "of the alphabet", "primary colors": "of the paint box", "meals of the day": "", "days of the weekend": "", "weekend days": "", "summer months": "", "winter months": "", "spring months": "", "autumn months": "", "colors of the rainbow": "", "workdays": "of the week", "cutlery": ""}  # fmt: skip


def some_of(rng: Random) -> tuple[str, list[str]]:
    """A request without a verb ("three animals that can fly"), and the items."""
    draw = rng.random()
    if draw < 0.12:
        place = rng.choice(list(_FOUND))
        items = _FOUND[place].split()
        what = rng.choice(
            [
                f"things {place}",
                f"things you find {place}",
                f"things that are {place}",
                f"things you see {place}",
                f"things one needs {place}",
            ]
        )
    elif draw < 0.2:
        pack = rng.choice(list(PACKS))
        items = PACKS[pack]
        what = rng.choice(
            [
                f"things for a {pack}",
                f"things that belong in a {pack}",
                f"things you need for a {pack}",
                f"things in a {pack}",
            ]
        )
    else:
        what = rng.choice(list(KINDS))
        items = KINDS[what]
    count = rng.randint(min(2, len(items)), min(6, len(items)))
    chosen = items[:count]
    if what in DAYS + MONTHS:
        return what, chosen
    number = rng.choice([in_words(count), in_words(count), str(count)])
    if count == 2 and rng.random() < 0.15:
        number = "a couple of"
    if count == 3 and rng.random() < 0.12:
        number = rng.choice(["some", "a few"])
    extra = rng.choice(
        ["", "", "", "", "", "different ", "common ", "simple ", "typical ", "good ", "well-known "]
    )
    return f"{number} {extra}{what}", chosen


def whole(rng: Random) -> tuple[str, list[str]]:
    """All of a kind, or a part of a row ("the days from Tuesday to Friday"), and the items."""
    draw = rng.random()
    if draw < 0.4:
        kind = rng.choice(list(WHOLE_KINDS))
        items = KINDS[kind]
        of = WHOLE_KINDS[kind]
        number = rng.choice(["", "", in_words(len(items)) + " ", f"{len(items)} "])
        all_ = rng.choice(["the ", "the ", "all the ", "all ", "all of the "])
        return f"{all_}{number}{kind}{' ' + of if of and rng.random() < 0.5 else ''}", list(items)
    if draw < 0.65:
        names = DAYS if rng.random() < 0.5 else MONTHS
        a = rng.randrange(len(names) - 2)
        b = rng.randrange(a + 1, len(names))
        unit = "days" if names is DAYS else "months"
        of = rng.choice(["", "", " of the week" if names is DAYS else " of the year"])
        return rng.choice([f"the {unit}{of} from {names[a]} to {names[b]}", f"the {unit}{of} between {names[a]} and {names[b]}" if b - a > 1 else f"the {unit} from {names[a]} to {names[b]}", f"all {unit} from {names[a]} to {names[b]}", f"the {unit} {names[a]} to {names[b]}"]), list(names[a : b + 1])  # fmt: skip
    if draw < 0.75:
        a = rng.randrange(18)
        b = a + rng.randint(2, 7)
        letters = "abcdefghijklmnopqrstuvwxyz"
        return rng.choice([f"the letters from {letters[a]} to {letters[b]}", f"all letters from {letters[a]} to {letters[b]}"]), list(letters[a : b + 1])  # fmt: skip
    if draw < 0.9:
        a = rng.choice((1, 1, rng.randint(0, 60)))
        b = a + rng.randint(2, 9)
        return rng.choice([f"the numbers from {a} to {b}", f"the numbers {a} to {b}", f"all numbers from {a} to {b}", f"numbers {a}-{b}"]), [str(i) for i in range(a, b + 1)]  # fmt: skip
    a = rng.randint(1, 10)
    count = rng.randint(3, 6)
    even = rng.random() < 0.5
    a += (a % 2 == 1) == even
    return f"the {'even' if even else 'odd'} numbers from {a} to {a + 2 * count}", [str(i) for i in range(a, a + 2 * count + 1, 2)]  # fmt: skip
