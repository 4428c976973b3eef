# ruff: noqa: E501 - lines of text read better whole
"""What ember knows: a closed set of facts, with the ways to ask for each, and how it answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .wordings import more_asks


@dataclass(frozen=True)
class Relation:
    """Facts of one shape: ``pairs`` of (subject, value), question templates and answer templates.

    ``follow`` are the short follow-up questions that make sense after a question of the same relation.
    ``short`` says that the bare value is an answer by itself (for "answer in one word").
    """

    name: str
    pairs: dict[str, str]
    asks: list[str]
    answers: list[str]
    follow: list[str] = field(default_factory=lambda: ["{And|And what about|What about|How about} $s?"])
    short: bool = True


CAPITALS = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon",
    "England": "London", "Ireland": "Dublin", "Scotland": "Edinburgh", "Wales": "Cardiff", "Austria": "Vienna",
    "Switzerland": "Bern", "Belgium": "Brussels", "the Netherlands": "Amsterdam", "Denmark": "Copenhagen",
    "Norway": "Oslo", "Sweden": "Stockholm", "Finland": "Helsinki", "Iceland": "Reykjavik", "Poland": "Warsaw",
    "Hungary": "Budapest", "Greece": "Athens", "Turkey": "Ankara", "Russia": "Moscow", "Ukraine": "Kyiv",
    "Romania": "Bucharest", "Bulgaria": "Sofia", "Croatia": "Zagreb", "Serbia": "Belgrade", "Slovakia": "Bratislava",
    "Slovenia": "Ljubljana", "Estonia": "Tallinn", "Latvia": "Riga", "Lithuania": "Vilnius", "Egypt": "Cairo",
    "Morocco": "Rabat", "Kenya": "Nairobi", "Nigeria": "Abuja", "Ghana": "Accra", "Ethiopia": "Addis Ababa",
    "Senegal": "Dakar", "Tunisia": "Tunis", "Algeria": "Algiers", "Uganda": "Kampala", "Zambia": "Lusaka",
    "China": "Beijing", "Japan": "Tokyo", "India": "New Delhi", "South Korea": "Seoul", "Thailand": "Bangkok",
    "Vietnam": "Hanoi", "Indonesia": "Jakarta", "Malaysia": "Kuala Lumpur", "the Philippines": "Manila",
    "Nepal": "Kathmandu", "Pakistan": "Islamabad", "Iran": "Tehran", "Iraq": "Baghdad", "Mongolia": "Ulaanbaatar",
    "Australia": "Canberra", "New Zealand": "Wellington", "Canada": "Ottawa", "Mexico": "Mexico City",
    "the United States": "Washington", "Cuba": "Havana", "Brazil": "Brasilia", "Argentina": "Buenos Aires",
    "Chile": "Santiago", "Peru": "Lima", "Colombia": "Bogota", "Venezuela": "Caracas", "Ecuador": "Quito",
    "Uruguay": "Montevideo", "Jamaica": "Kingston",
}  # fmt: skip

CONTINENTS = {
    "France": "Europe", "Germany": "Europe", "Italy": "Europe", "Spain": "Europe", "Poland": "Europe",
    "Greece": "Europe", "Norway": "Europe", "Sweden": "Europe", "Ireland": "Europe", "Portugal": "Europe",
    "Egypt": "Africa", "Morocco": "Africa", "Kenya": "Africa", "Nigeria": "Africa", "Ghana": "Africa",
    "Ethiopia": "Africa", "Senegal": "Africa", "Uganda": "Africa", "Zambia": "Africa", "Tunisia": "Africa",
    "China": "Asia", "Japan": "Asia", "India": "Asia", "Thailand": "Asia", "Vietnam": "Asia", "Nepal": "Asia",
    "Mongolia": "Asia", "Iran": "Asia", "South Korea": "Asia", "Pakistan": "Asia", "Canada": "North America",
    "Mexico": "North America", "Cuba": "North America", "Brazil": "South America", "Argentina": "South America",
    "Chile": "South America", "Peru": "South America", "Colombia": "South America", "Ecuador": "South America",
}  # fmt: skip

LANGUAGES = {
    "France": "French", "Germany": "German", "Italy": "Italian", "Spain": "Spanish", "Portugal": "Portuguese",
    "England": "English", "Poland": "Polish", "Greece": "Greek", "Sweden": "Swedish", "Denmark": "Danish",
    "Norway": "Norwegian", "Finland": "Finnish", "Hungary": "Hungarian", "Turkey": "Turkish", "Russia": "Russian",
    "Japan": "Japanese", "China": "Chinese", "Brazil": "Portuguese", "Mexico": "Spanish", "Egypt": "Arabic",
    "Vietnam": "Vietnamese", "Thailand": "Thai", "Austria": "German", "Cuba": "Spanish", "the Netherlands": "Dutch",
}  # fmt: skip

SOUNDS = {
    "cow": "moo", "dog": "woof", "cat": "meow", "duck": "quack", "sheep": "baa", "pig": "oink", "horse": "neigh",
    "rooster": "cock-a-doodle-doo", "lion": "roar", "owl": "hoot", "frog": "croak", "bee": "buzz", "snake": "hiss",
    "mouse": "squeak", "wolf": "howl", "donkey": "hee-haw", "crow": "caw", "goose": "honk", "hen": "cluck",
    "turkey": "gobble",
}  # fmt: skip

BABIES = {
    "cow": "calf", "dog": "puppy", "cat": "kitten", "duck": "duckling", "sheep": "lamb", "pig": "piglet",
    "horse": "foal", "hen": "chick", "lion": "cub", "bear": "cub", "goat": "kid", "frog": "tadpole", "deer": "fawn",
    "kangaroo": "joey", "swan": "cygnet", "goose": "gosling", "owl": "owlet", "eagle": "eaglet", "elephant": "calf",
    "whale": "calf", "wolf": "pup", "seal": "pup", "fox": "cub", "butterfly": "caterpillar",
}  # fmt: skip

ANIMAL_HOMES = {
    "bird": "nest", "bee": "hive", "fox": "den", "rabbit": "burrow", "spider": "web", "dog": "kennel",
    "horse": "stable", "pig": "sty", "bear": "cave", "beaver": "lodge", "cow": "barn", "hen": "coop",
    "ant": "anthill", "lion": "den", "mole": "tunnel", "squirrel": "tree hole",
}  # fmt: skip

LEGS = {
    "dog": "four", "cat": "four", "horse": "four", "cow": "four", "elephant": "four", "frog": "four", "lion": "four",
    "bird": "two", "chicken": "two", "duck": "two", "penguin": "two", "ostrich": "two", "spider": "eight",
    "scorpion": "eight", "ant": "six", "bee": "six", "butterfly": "six", "beetle": "six", "fly": "six",
    "ladybug": "six", "crab": "ten", "lobster": "ten", "snake": "no", "fish": "no", "worm": "no", "snail": "no",
}  # fmt: skip

GROUPS = {
    "dog": "mammal", "cat": "mammal", "whale": "mammal", "bat": "mammal", "dolphin": "mammal", "elephant": "mammal",
    "mouse": "mammal", "horse": "mammal", "eagle": "bird", "penguin": "bird", "owl": "bird", "sparrow": "bird",
    "ostrich": "bird", "duck": "bird", "snake": "reptile", "lizard": "reptile", "turtle": "reptile",
    "crocodile": "reptile", "frog": "amphibian", "toad": "amphibian", "newt": "amphibian", "salmon": "fish",
    "shark": "fish", "tuna": "fish", "trout": "fish", "bee": "insect", "ant": "insect", "butterfly": "insect",
    "beetle": "insect", "mosquito": "insect", "crab": "crustacean", "spider": "arachnid",
}  # fmt: skip

COLORS = {
    "grass": "green", "snow": "white", "coal": "black", "the sky": "blue", "a lemon": "yellow", "a banana": "yellow",
    "blood": "red", "a tomato": "red", "a strawberry": "red", "a carrot": "orange", "a pumpkin": "orange",
    "milk": "white", "chocolate": "brown", "a frog": "green", "the sun": "yellow", "a crow": "black",
    "a flamingo": "pink", "an elephant": "gray", "a plum": "purple", "a polar bear": "white", "a fire truck": "red",
    "a cucumber": "green", "an eggplant": "purple", "the night sky": "black", "cotton": "white", "the sea": "blue",
}  # fmt: skip

MIXES = {
    "red and yellow": "orange", "blue and yellow": "green", "red and blue": "purple", "red and white": "pink",
    "black and white": "gray", "yellow and red": "orange", "yellow and blue": "green", "blue and red": "purple",
    "white and red": "pink", "white and black": "gray",
}  # fmt: skip

UNITS = {
    "seconds are in a minute": "60 seconds are in a minute", "minutes are in an hour": "60 minutes are in an hour",
    "hours are in a day": "24 hours are in a day", "days are in a week": "7 days are in a week",
    "months are in a year": "12 months are in a year", "days are in a year": "365 days are in a year",
    "weeks are in a year": "52 weeks are in a year", "years are in a decade": "10 years are in a decade",
    "years are in a century": "100 years are in a century",
    "years are in a millennium": "1000 years are in a millennium",
    "centimeters are in a meter": "100 centimeters are in a meter",
    "meters are in a kilometer": "1000 meters are in a kilometer",
    "millimeters are in a centimeter": "10 millimeters are in a centimeter",
    "grams are in a kilogram": "1000 grams are in a kilogram",
    "kilograms are in a ton": "1000 kilograms are in a ton",
    "milliliters are in a liter": "1000 milliliters are in a liter", "inches are in a foot": "12 inches are in a foot",
    "feet are in a yard": "3 feet are in a yard", "eggs are in a dozen": "12 eggs are in a dozen",
    "cents are in a dollar": "100 cents are in a dollar", "seasons are in a year": "4 seasons are in a year",
    "letters are in the alphabet": "26 letters are in the alphabet", "bits are in a byte": "8 bits are in a byte",
    "quarters are in a whole": "4 quarters are in a whole",
    "colors are in a rainbow": "7 colors are in a rainbow",
    "players are on a soccer team": "11 players are on a soccer team",
    "strings are on a violin": "4 strings are on a violin", "strings are on a guitar": "6 strings are on a guitar",
    "wheels are on a bicycle": "2 wheels are on a bicycle", "wheels are on a car": "4 wheels are on a car",
    "wheels are on a tricycle": "3 wheels are on a tricycle",
    "planets are in the solar system": "8 planets are in the solar system",
    "continents are on Earth": "7 continents are on Earth",
    "fingers are on one hand": "5 fingers are on one hand", "arms are on an octopus": "8 arms are on an octopus",
}  # fmt: skip

SHAPES = {
    "triangle": "3", "square": "4", "rectangle": "4", "pentagon": "5", "hexagon": "6", "heptagon": "7",
    "octagon": "8", "nonagon": "9", "decagon": "10",
}  # fmt: skip

DIETS = {
    "cat": "mice and fish", "dog": "meat", "cow": "grass", "rabbit": "grass and carrots", "panda": "bamboo",
    "squirrel": "nuts", "lion": "meat", "horse": "hay and grass", "bear": "fish, berries and honey", "monkey": "fruit",
    "owl": "mice", "frog": "flies", "sparrow": "seeds", "mouse": "seeds and cheese", "goat": "grass",
    "giraffe": "leaves", "elephant": "leaves and grass", "snake": "mice", "koala": "leaves", "butterfly": "nectar",
    "penguin": "fish", "seal": "fish", "spider": "insects", "fox": "mice and birds", "hedgehog": "insects",
    "duck": "plants and small animals", "sheep": "grass", "wolf": "meat", "tiger": "meat", "bat": "insects",
}  # fmt: skip

MAKES = {
    "bread": "a baker", "cakes": "a baker", "furniture": "a carpenter", "clothes": "a tailor", "shoes": "a shoemaker",
    "honey": "a bee", "paintings": "a painter", "books": "a writer", "music": "a musician", "houses": "a builder",
    "webs": "a spider", "pots": "a potter", "milk": "a cow", "eggs": "a hen", "wool": "a sheep", "silk": "a silkworm",
}  # fmt: skip

JOBS = {
    "teacher": "at a school", "doctor": "at a hospital", "nurse": "at a hospital", "farmer": "on a farm",
    "baker": "in a bakery", "pilot": "on a plane", "sailor": "on a ship", "judge": "in a court",
    "librarian": "in a library", "chef": "in a kitchen", "waiter": "in a restaurant", "miner": "in a mine",
    "gardener": "in a garden", "scientist": "in a laboratory", "actor": "in a theater", "cashier": "in a shop",
}  # fmt: skip

TOOLS_FOR = {
    "cut paper": "scissors", "hit a nail": "a hammer", "cut wood": "a saw", "tell the time": "a clock",
    "sweep the floor": "a broom", "open a lock": "a key", "dig a hole": "a shovel", "measure temperature": "a thermometer",
    "see far stars": "a telescope", "see tiny things": "a microscope", "write on paper": "a pencil",
    "stay dry in the rain": "an umbrella", "eat soup": "a spoon", "sew clothes": "a needle", "paint a wall": "a brush",
    "find north": "a compass", "wash your hands": "soap", "dry your hands": "a towel", "brush your teeth": "a toothbrush",
    "weigh things": "a scale",
}  # fmt: skip

SINGLE = {
    "What is the largest planet?|Which planet is the biggest?": "The largest planet is Jupiter.",
    "What is the closest planet to the sun?|Which planet is nearest to the sun?": "The closest planet to the sun is Mercury.",
    "Which planet is called the red planet?|What is the red planet?": "The red planet is Mars.",
    "Which planet has big rings?|What planet is famous for its rings?": "The planet with the big rings is Saturn.",
    "What is the largest ocean?|Which ocean is the biggest?": "The largest ocean is the Pacific Ocean.",
    "What is the tallest mountain?|Which mountain is the highest in the world?": "The tallest mountain is Mount Everest.",
    "What is the largest animal?|Which animal is the biggest in the world?": "The largest animal is the blue whale.",
    "What is the fastest land animal?|Which land animal runs the fastest?": "The fastest land animal is the cheetah.",
    "What is the tallest animal?|Which animal has the longest neck?": "The tallest animal is the giraffe.",
    "What is the largest bird?|Which bird is the biggest?": "The largest bird is the ostrich.",
    "What is the longest river?|Which river is the longest in the world?": "The longest river is the Nile.",
    "What is the largest country?|Which country is the biggest?": "The largest country is Russia.",
    "What is the smallest country?|Which country is the smallest in the world?": "The smallest country is Vatican City.",
    "What is the largest continent?|Which continent is the biggest?": "The largest continent is Asia.",
    "What is the coldest continent?|Which continent is covered with ice?": "The coldest continent is Antarctica.",
    "What is the hottest planet?|Which planet is the hottest?": "The hottest planet is Venus.",
    "What is the star at the center of our solar system?|Which star is closest to Earth?": "The star closest to Earth is the sun.",
    "What goes around the Earth at night?|What orbits the Earth?": "The moon goes around the Earth.",
    "What do plants need to grow?|What does a plant need?": "Plants need water, light and air.",
    "What do bees make?|What do bees produce?": "Bees make honey.",
    "What is water made of?|What are the elements in water?": "Water is made of hydrogen and oxygen.",
    "What gas do we breathe?|Which gas do people need to live?": "We breathe oxygen.",
    "At what temperature does water boil?|When does water boil?": "Water boils at 100 degrees Celsius.",
    "At what temperature does water freeze?|When does water freeze?": "Water freezes at 0 degrees Celsius.",
    "What is frozen water called?|What do we call frozen water?": "Frozen water is called ice.",
    "What falls from the clouds in winter?|What is white and falls in winter?": "In winter, snow falls from the clouds.",
    "What is the first letter of the alphabet?|Which letter comes first in the alphabet?": "The first letter of the alphabet is A.",
    "What is the last letter of the alphabet?|Which letter comes last in the alphabet?": "The last letter of the alphabet is Z.",
    "What are the vowels?|Which letters are vowels?": "The vowels are A, E, I, O and U.",
    "What are the four seasons?|Can you name the seasons?": "The four seasons are spring, summer, autumn and winter.",
    "What are the primary colors?|Which colors are primary colors?": "The primary colors are red, yellow and blue.",
    "Where does the sun rise?|In which direction does the sun rise?": "The sun rises in the east.",
    "Where does the sun set?|In which direction does the sun set?": "The sun sets in the west.",
    "What is the king of the jungle?|Which animal is called the king of the animals?": "The lion is called the king of the animals.",
    "What is the hardest natural material?|Which stone is the hardest?": "The hardest natural material is diamond.",
    "What do caterpillars become?|What does a caterpillar turn into?": "Caterpillars become butterflies.",
    "What do tadpoles become?|What does a tadpole turn into?": "Tadpoles become frogs.",
    "Which animal carries its house on its back?|What animal has a shell for a house and is very slow?": "The snail carries its house on its back.",
    "Which bird cannot fly but swims well?|What bird lives in the ice and swims?": "The penguin cannot fly, but it swims well.",
    "Which animal has a trunk?|What animal has a very long nose?": "The elephant has a trunk.",
    "Which animal has black and white stripes?|What animal looks like a striped horse?": "The zebra has black and white stripes.",
    "Which animal sleeps through the winter?|What animal sleeps all winter?": "The bear sleeps through the winter.",
    "Which animal is man's best friend?|What animal is called a person's best friend?": "The dog is called man's best friend.",
    "What do you use to see?|Which part of the body do we see with?": "We see with our eyes.",
    "What do you use to hear?|Which part of the body do we hear with?": "We hear with our ears.",
    "What do you use to smell?|Which part of the body do we smell with?": "We smell with our nose.",
    "What pumps blood through the body?|Which organ pumps blood?": "The heart pumps blood through the body.",
    "Who wrote Romeo and Juliet?|Which writer wrote Romeo and Juliet?": "William Shakespeare wrote Romeo and Juliet.",
    "Who painted the Mona Lisa?|Which painter made the Mona Lisa?": "Leonardo da Vinci painted the Mona Lisa.",
    "Who was the first person on the moon?|Which person first walked on the moon?": "The first person on the moon was Neil Armstrong.",
    "Who discovered gravity?|Which scientist is famous for gravity and an apple?": "Isaac Newton is famous for discovering gravity.",
    "Where is the Eiffel Tower?|In which city is the Eiffel Tower?": "The Eiffel Tower is in Paris.",
    "Where is the Colosseum?|In which city is the Colosseum?": "The Colosseum is in Rome.",
    "Where is Big Ben?|In which city is Big Ben?": "Big Ben is in London.",
    "Where are the pyramids?|In which country are the great pyramids?": "The great pyramids are in Egypt.",
    "Where is the Statue of Liberty?|In which city is the Statue of Liberty?": "The Statue of Liberty is in New York.",
    "Where do kangaroos live?|In which country do kangaroos live?": "Kangaroos live in Australia.",
    "Where do polar bears live?|Where is the home of the polar bear?": "Polar bears live in the Arctic.",
    "Where do penguins live?|Where is the home of the penguins?": "Most penguins live in the south, many of them in Antarctica.",
    "Where do fish live?|What do fish live in?": "Fish live in water.",
    "What is the currency of Japan?|What money do people use in Japan?": "The currency of Japan is the yen.",
    "What is the currency of the United States?|What money do people use in the United States?": "The currency of the United States is the dollar.",
    "What is the currency of England?|What money do people use in England?": "The currency of England is the pound.",
    "What is the currency of France?|What money do people use in France?": "The currency of France is the euro.",
    "What is the currency of India?|What money do people use in India?": "The currency of India is the rupee.",
}  # fmt: skip

_RELATIONS = [
    Relation(
        "capital", CAPITALS,
        ["What is the capital of $s?", "What's the capital of $s?", "Which city is the capital of $s?",
         "Name the capital of $s.", "Tell me the capital of $s.", "Do you know the capital of $s?",
         "What is the capital city of $s?", "Capital of $s?", "$s: which city is its capital?",
         "I need the capital of $s.", "Which city is $s's capital?"],
        ["The capital of $s is $v."],
        ["{And|And what about|What about|How about} $s?", "{And|And what is that} of $s?", "And the capital of $s?"],
    ),
    Relation(
        "capital_of", {city: land for land, city in CAPITALS.items()},
        ["$s is the capital of which country?", "Which country has $s as its capital?",
         "What country is $s the capital of?", "Of which country is $s the capital?",
         "Name the country whose capital is $s.", "$s is the capital of what country?"],
        ["$s is the capital of $v."],
    ),
    Relation(
        "continent", CONTINENTS,
        ["On which continent is $s?", "What continent is $s in?", "Which continent is $s part of?",
         "Where in the world is $s?", "In which part of the world is $s?", "On what continent does $s lie?"],
        ["$s is in $v."],
    ),
    Relation(
        "language", LANGUAGES,
        ["What language do people speak in $s?", "Which language is spoken in $s?", "What is the language of $s?",
         "What do people speak in $s?", "Which language do they speak in $s?", "Name the language of $s."],
        ["People in $s speak $v."],
    ),
    Relation(
        "sound", SOUNDS,
        ["What sound does a $s make?", "What sound do $p make?", "What does a $s say?", "How does a $s sound?", "What noise does a $s make?",
         "Which sound does a $s make?", "Tell me the sound of a $s.", "Make the sound of a $s."],
        ["A $s says $v."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "baby", BABIES,
        ["What is a baby $s called?", "What do you call a baby $s?", "What is the name for a baby $s?",
         "What is a young $s called?", "How do you call the young of a $s?", "Name the baby of a $s."],
        ["A baby $s is called a $v."], ["{And|And what about|What about|How about} a $s?", "And a baby $s?"],
    ),
    Relation(
        "home", ANIMAL_HOMES,
        ["What is the home of a $s called?", "Where do $p live?", "Where does a $s live?", "In what does a $s live?",
         "What do you call the home of a $s?", "What kind of home does a $s have?", "Name the home of a $s."],
        ["A $s lives in a $v."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "legs", LEGS,
        ["How many legs does a $s have?", "How many legs do $p have?", "How many legs has a $s got?", "What number of legs does a $s have?",
         "Tell me how many legs a $s has.", "Count the legs of a $s.", "A $s has how many legs?"],
        ["A $s has $v legs."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "group", GROUPS,
        ["What kind of animal is a $s?", "What type of animal is a $s?", "To which group does a $s belong?",
         "Is a $s a mammal, a bird, a reptile, a fish or something else?", "Which animal group does a $s belong to?",
         "What sort of animal is the $s?"],
        ["A $s is a $v."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "color", COLORS,
        ["What color is $s?", "Which color is $s?", "What is the color of $s?", "Tell me the color of $s.",
         "Name the color of $s.", "What color does $s have?", "What colour is $s?"],
        ["^$s is $v."], ["{And|And what about|What about|How about} $s?"],
    ),
    Relation(
        "mix", MIXES,
        ["What color do you get when you mix $s?", "What do $s make?", "If I mix $s, what color do I get?",
         "Mix $s. Which color is it?", "What is the mix of $s?", "Which color comes from mixing $s?"],
        ["If you mix $s, you get $v."], ["{And|And what about|What about|How about} $s?"],
    ),
    Relation(
        "units", UNITS,
        ["How many $s?", "Tell me how many $s.", "Do you know how many $s?", "I want to know how many $s.",
         "Can you say how many $s?", "Quick question: how many $s?", "Please tell me how many $s."],
        ["$v."], ["And how many $s?", "How many $s?"], short=False,
    ),
    Relation(
        "sides", SHAPES,
        ["How many sides does a $s have?", "How many corners does a $s have?", "A $s has how many sides?",
         "Count the sides of a $s.", "What is the number of sides of a $s?", "Tell me how many sides a $s has."],
        ["A $s has $v sides."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "diet", DIETS,
        ["What does a $s eat?", "What do $p eat?", "What do $p like to eat?", "What do you know about the food of a $s?", "What is the food of a $s?", "What does a $s like to eat?",
         "Tell me what a $s eats.", "What food does a $s need?", "What do you feed a $s?"],
        ["A $s eats $v."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "maker", MAKES,
        ["Who makes $s?", "Who or what makes $s?", "Name someone who makes $s.",
         "Which person or animal makes $s?", "Who do we get $s from?", "Tell me who makes $s."],
        ["^$v makes $s."], ["{And|And what about|What about|How about} $s?"],
    ),
    Relation(
        "job", JOBS,
        ["Where does a $s work?", "Where do you find a $s at work?", "What is the workplace of a $s?",
         "In which place does a $s work?", "Tell me where a $s works.", "Name the place where a $s works."],
        ["A $s works $v."], ["{And|And what about|What about|How about} a $s?", "And a $s?"],
    ),
    Relation(
        "tool_for", TOOLS_FOR,
        ["What do you use to $s?", "What do I need to $s?", "Which thing helps you to $s?", "With what do you $s?",
         "I want to $s. What do I need?", "Name a thing to $s with."],
        ["To $s, you use $v."], ["{And|And what about} to $s?"],
    ),
]  # fmt: skip
RELATIONS = [replace(relation, asks=[*relation.asks, *more_asks(relation.name)]) for relation in _RELATIONS]
