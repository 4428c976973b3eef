# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""More that ember knows: what things are in a sentence, who made what, words that mean the same, rhyme or fit."""

from __future__ import annotations

from random import Random

from .grammar import write
from .sample import Turn
from .topics import MORE_TOPICS
from .topics_more import EVERYDAY
from .trivia import TRIVIA
from .trivia_more import TRIVIA_MORE
from .typed import typed
from .words import ADJECTIVES, PLURALS

# thing: what it is, in a sentence that begins with "It is" or "They" left out
_TOPICS: dict[str, str] = {
    "the sun": "The sun is the star at the center of our solar system.", "the moon": "The moon goes around the Earth and shines at night.",
    "a star": "A star is a huge ball of hot gas that shines.", "a planet": "A planet is a big round body that goes around a star.",
    "the Earth": "The Earth is the planet on which we live.", "Mars": "Mars is the red planet.", "Jupiter": "Jupiter is the largest planet of our solar system.",
    "Saturn": "Saturn is a planet with big rings.", "Venus": "Venus is the hottest planet.", "Pluto": "Pluto is a dwarf planet far away from the sun.",
    "gravity": "Gravity is the force that pulls things to the ground.", "water": "Water is a clear liquid that all living things need.",
    "ice": "Ice is frozen water.", "steam": "Steam is water that has become a gas.", "fire": "Fire is hot and bright, and it burns wood.",
    "air": "Air is what we breathe.", "oxygen": "Oxygen is a gas that we need to breathe.", "light": "Light lets us see, and it is very fast.",
    "electricity": "Electricity is the energy that runs lamps and machines.", "photosynthesis": "Photosynthesis is how plants make food from light, water and air.",
    "rain": "Rain is water that falls from the clouds.", "snow": "Snow is frozen water that falls from the clouds.", "a rainbow": "A rainbow is a band of seven colors in the sky.",
    "a cloud": "A cloud is made of many tiny drops of water.", "the wind": "The wind is moving air.", "a storm": "A storm is bad weather with strong wind and rain.",
    "thunder": "Thunder is the loud sound that comes after lightning.", "lightning": "Lightning is a bright flash of electricity in the sky.",
    "a volcano": "A volcano is a mountain that can throw out hot rock.", "a river": "A river is a long stream of water that flows to the sea.",
    "a lake": "A lake is a large body of water with land around it.", "the sea": "The sea is a very large body of salt water.", "an ocean": "An ocean is a huge body of salt water.",
    "an island": "An island is land with water all around it.", "a mountain": "A mountain is a very high piece of land.", "a forest": "A forest is a place with many trees.",
    "a desert": "A desert is a dry place where it hardly ever rains.", "a jungle": "A jungle is a warm forest with many plants and animals.",
    "a dog": "A dog is an animal with four legs that barks and is a good friend of people.", "a cat": "A cat is a small animal with soft fur that catches mice.",
    "a horse": "A horse is a big animal with four legs that people can ride.", "a cow": "A cow is a farm animal that gives milk.",
    "a sheep": "A sheep is a farm animal that gives wool.", "a pig": "A pig is a farm animal that likes mud.", "a hen": "A hen is a bird that lays eggs.",
    "a bird": "A bird is an animal with feathers and two wings.", "a fish": "A fish is an animal that lives in water.", "a whale": "A whale is a very large mammal that lives in the sea.",
    "a dolphin": "A dolphin is a clever mammal that lives in the sea.", "a shark": "A shark is a large fish with sharp teeth.", "a penguin": "A penguin is a bird that cannot fly but swims well.",
    "an owl": "An owl is a bird that hunts at night.", "an eagle": "An eagle is a large bird with sharp eyes.", "a bee": "A bee is an insect that makes honey.",
    "an ant": "An ant is a small insect that lives with many others.", "a butterfly": "A butterfly is an insect with colorful wings.", "a spider": "A spider is a small animal with eight legs that spins webs.",
    "a snake": "A snake is a long animal without legs.", "a frog": "A frog is a green animal that jumps and swims.", "a turtle": "A turtle is a slow animal with a hard shell.",
    "a lion": "A lion is a big wild cat that roars.", "a tiger": "A tiger is a big wild cat with stripes.", "an elephant": "An elephant is a very big gray animal with a trunk.",
    "a giraffe": "A giraffe is a tall animal with a very long neck.", "a zebra": "A zebra is an animal with black and white stripes.", "a monkey": "A monkey is a clever animal that climbs trees.",
    "a bear": "A bear is a big strong animal with thick fur.", "a wolf": "A wolf is a wild animal that looks like a dog.", "a fox": "A fox is a clever wild animal with red fur.",
    "a rabbit": "A rabbit is a small animal with long ears.", "a mouse": "A mouse is a very small animal with a long tail.", "a camel": "A camel is an animal of the desert with a hump on its back.",
    "a kangaroo": "A kangaroo is an animal from Australia that jumps and carries its baby in a pouch.", "a panda": "A panda is a black and white bear that eats bamboo.",
    "a dinosaur": "A dinosaur is an animal that lived millions of years ago.", "a dragon": "A dragon is an animal of fairy tales that breathes fire.", "a unicorn": "A unicorn is a horse of fairy tales with one horn.",
    "a tree": "A tree is a tall plant with a trunk of wood.", "a flower": "A flower is the colorful part of a plant.", "a rose": "A rose is a flower that smells sweet and has thorns.",
    "a seed": "A seed is a small thing from which a plant grows.", "an apple": "An apple is a round fruit that grows on trees.", "a banana": "A banana is a long yellow fruit.",
    "a lemon": "A lemon is a sour yellow fruit.", "a potato": "A potato is a vegetable that grows under the ground.", "bread": "Bread is a food that is baked from flour and water.",
    "honey": "Honey is a sweet food that bees make.", "cheese": "Cheese is a food that is made from milk.", "milk": "Milk is a white drink that comes from cows.", "butter": "Butter is a soft yellow food that is made from cream.",
    "chocolate": "Chocolate is a sweet brown food that is made from cocoa.", "sugar": "Sugar is a sweet white food.", "salt": "Salt is white and makes food taste better.", "tea": "Tea is a hot drink that is made from leaves.",
    "coffee": "Coffee is a hot dark drink that is made from beans.", "pizza": "Pizza is a flat bread with tomatoes and cheese.", "pasta": "Pasta is a food from Italy that is made from flour.", "rice": "Rice is a grain that grows in wet fields.",
    "a baker": "A baker makes bread and cakes.", "a teacher": "A teacher helps children to learn at school.", "a doctor": "A doctor helps sick people to get well.", "a nurse": "A nurse takes care of sick people.",
    "a farmer": "A farmer grows food and keeps animals.", "a pilot": "A pilot flies a plane.", "a sailor": "A sailor works on a ship.", "a chef": "A chef cooks food in a kitchen.", "a painter": "A painter makes pictures with colors.",
    "a gardener": "A gardener takes care of plants.", "a carpenter": "A carpenter makes things of wood.", "a writer": "A writer writes books.", "a musician": "A musician makes music.", "a judge": "A judge decides in a court.",
    "a firefighter": "A firefighter puts out fires and saves people.", "a police officer": "A police officer keeps people safe.", "a dentist": "A dentist takes care of teeth.", "a tailor": "A tailor makes clothes.", "a scientist": "A scientist finds out how the world works.",
    "an astronaut": "An astronaut travels to space.", "a king": "A king is a man who rules a country.", "a queen": "A queen is a woman who rules a country.", "a pirate": "A pirate is a robber at sea.",
    "a book": "A book has many pages that you can read.", "a library": "A library is a place with many books.", "a school": "A school is a place where children learn.", "a hospital": "A hospital is a place where sick people get help.",
    "a museum": "A museum is a place where you can see old or beautiful things.", "a computer": "A computer is a machine that works with numbers and text.", "a robot": "A robot is a machine that can move and work by itself.",
    "a telephone": "A telephone lets you talk with people who are far away.", "a clock": "A clock shows the time.", "a bicycle": "A bicycle has two wheels, and you ride it with your feet.", "a car": "A car has four wheels and an engine.",
    "a train": "A train runs on rails and carries many people.", "a plane": "A plane is a machine that flies.", "a ship": "A ship is a large boat that crosses the sea.", "a bridge": "A bridge leads over a river or a road.",
    "a house": "A house is a building in which people live.", "a door": "A door is what you open to go into a room.", "a hammer": "A hammer is a tool for hitting nails.", "a piano": "A piano is a large instrument with black and white keys.",
    "a guitar": "A guitar is an instrument with six strings.", "a violin": "A violin is an instrument with four strings.", "music": "Music is sound that is nice to hear.", "a poem": "A poem is a short text that often rhymes.",
    "football": "Football is a game in which two teams kick a ball.", "chess": "Chess is a board game for two players.", "tennis": "Tennis is a game with a ball and rackets.", "summer": "Summer is the warmest season of the year.",
    "winter": "Winter is the coldest season of the year.", "spring": "Spring is the season in which flowers begin to grow.", "autumn": "Autumn is the season in which the leaves fall.", "a triangle": "A triangle is a shape with three sides.",
    "a square": "A square is a shape with four equal sides.", "a circle": "A circle is a round shape.", "a friend": "A friend is someone whom you like and trust.", "love": "Love is a strong and warm feeling for someone.",
    "happiness": "Happiness is a good and warm feeling.", "a family": "A family is a group of people who belong together.", "money": "Money is what people use to buy things.", "time": "Time is what a clock measures.",
    "a dream": "A dream is what you see while you sleep.", "the heart": "The heart pumps blood through the body.", "the brain": "The brain is the part of the body that thinks.", "blood": "Blood is a red liquid that flows through the body.",
    "a language model": "A language model is a program that writes text, one word after another.", "artificial intelligence": "Artificial intelligence means computer programs that can do things that need thinking.",
    "the internet": "The internet is a network of computers all over the world.", "Paris": "Paris is the capital of France.", "London": "London is the capital of England.", "Rome": "Rome is the capital of Italy.", "Berlin": "Berlin is the capital of Germany.",
    "Tokyo": "Tokyo is the capital of Japan.", "France": "France is a country in Europe.", "Italy": "Italy is a country in Europe.", "Spain": "Spain is a country in Europe.", "Japan": "Japan is a country in Asia.", "China": "China is a country in Asia.", "Egypt": "Egypt is a country in Africa.", "Brazil": "Brazil is a country in South America.",
    "Christmas": "Christmas is a feast in December on which people give presents.", "a birthday": "A birthday is the day on which someone was born.", "sleep": "Sleep is the rest that the body needs at night.",
}  # fmt: skip
TOPICS = EVERYDAY | _TOPICS | MORE_TOPICS
_DOES = {k: v for k, v in TOPICS.items() if v.split()[2 if k.startswith(("a ", "an ")) else 1] not in ("is", "are", "has", "was", "means")}  # fmt: skip

# (questions, answer, the bare answer)
_QUIZ: list[tuple[str, str, str]] = [
    ("{Who|Which writer|What author} wrote {Romeo and Juliet|Hamlet|Macbeth}|who is the {author|writer} of {Hamlet|Romeo and Juliet|Macbeth}", "William Shakespeare wrote it.", "Shakespeare"),
    ("who painted the Mona Lisa|{which|what} {painter|artist} {made|painted} the Mona Lisa|the Mona Lisa was painted by whom|who is the {painter|artist} of the Mona Lisa", "Leonardo da Vinci painted the Mona Lisa.", "Leonardo"),
    ("who {painted|made} the Starry Night|which painter cut off his ear", "Vincent van Gogh painted the Starry Night.", "van Gogh"),
    ("who was the first {man|person|human} {on the moon|to walk on the moon|to set foot on the moon}|who {walked on the moon first|first walked on the moon|landed on the moon first}", "The first person on the moon was Neil Armstrong.", "Armstrong"),
    ("who {invented|made} the {light bulb|electric light|phonograph}|what did Edison invent", "Thomas Edison is famous for the light bulb.", "Edison"),
    ("who {invented|made} the {telephone|phone}|what did Alexander Graham Bell invent", "Alexander Graham Bell invented the telephone.", "Bell"),
    ("who {discovered|found} {gravity|the law of gravity}|which scientist saw an apple fall", "Isaac Newton discovered gravity.", "Newton"),
    ("who {developed|discovered|invented|found} the theory of relativity|{who|which scientist} wrote E = mc2|who was Albert Einstein|who is Einstein|who was Einstein", "Albert Einstein found the theory of relativity.", "Einstein"),
    ("who {discovered|found} America|{who|which sailor} sailed to America in 1492", "Christopher Columbus sailed to America in 1492.", "Columbus"),
    ("who {composed|wrote} the {Ninth Symphony|Moonlight Sonata}|who was Beethoven|who is Beethoven", "Ludwig van Beethoven was a great composer.", "Beethoven"),
    ("who {composed|wrote} the Magic Flute|who was Mozart|who is Mozart", "Wolfgang Amadeus Mozart was a great composer.", "Mozart"),
    ("who was William Shakespeare|who is Shakespeare|who was Shakespeare", "William Shakespeare was an English writer of plays and poems.", "Shakespeare"),
    ("who was Leonardo da Vinci|who is Leonardo da Vinci", "Leonardo da Vinci was an Italian painter and inventor.", "Leonardo"),
    ("who was Isaac Newton|who is Isaac Newton|who was Newton", "Isaac Newton was a scientist who discovered gravity.", "Newton"),
    ("who was Neil Armstrong|who is Neil Armstrong", "Neil Armstrong was the first person on the moon.", "Armstrong"),
    ("who {was the first president|was the first president of the {USA|United States}}|who was George Washington", "George Washington was the first president of the United States.", "Washington"),
    ("who wrote {Faust|the play Faust}", "Johann Wolfgang von Goethe wrote Faust.", "Goethe"),
    ("who wrote {Don Quixote|the book Don Quixote}", "Miguel de Cervantes wrote Don Quixote.", "Cervantes"),
    ("who wrote {Harry Potter|the Harry Potter books}|who is the author of Harry Potter", "J. K. Rowling wrote the Harry Potter books.", "Rowling"),
    ("what is the {largest|biggest} planet{| in our solar system| of the solar system}|{which|what} planet is {the |}{largest|biggest}{| one}{| in our solar system| of all}|name the {biggest|largest} planet", "The largest planet is Jupiter.", "Jupiter"),
    ("what is the smallest planet|which planet is {the |}smallest{| one}|name the smallest planet|which planet is closest to the sun|what is the closest planet to the sun", "Mercury is the smallest planet and the closest one to the sun.", "Mercury"),
    ("{which|what} planet is {the red planet|red|called the red planet}|what is the red planet", "The red planet is Mars.", "Mars"),
    ("{which|what} planet has rings|which planet is known for its rings", "The planet with the big rings is Saturn.", "Saturn"),
    ("{which|what} planet do we live on|on which planet do we live|what is our planet called|what planet are we on", "We live on the planet Earth.", "Earth"),
    ("how many planets are there{| in {our|the} solar system}|how many planets does {our|the} solar system have|number of planets in the solar system", "There are 8 planets in the solar system.", "8"),
    ("{what|which} is the {largest|biggest} ocean{| on Earth| in the world}|{which|what} ocean is {the |}{largest|biggest}{| of all| on Earth}|name the {biggest|largest} ocean{| on earth| in the world}", "The largest ocean is the Pacific Ocean.", "Pacific"),
    ("{what|which} is the {tallest|highest} mountain{| on Earth| in the world}|{which|what} mountain is the {tallest|highest}{| of all| on Earth}|name the {tallest|highest} mountain{| on earth| in the world}|how is the highest mountain called", "The tallest mountain is Mount Everest.", "Everest"),
    ("{what|which} is the longest river{| on Earth| in the world}|{which|what} river is the longest{| of all| on Earth}|name the longest river", "The longest river is the Nile.", "Nile"),
    ("{what|which} is the {largest|biggest} {animal|mammal}{| on Earth| in the world}|{which|what} animal is the {largest|biggest|heaviest}{| of all| on Earth}", "The largest animal is the blue whale.", "whale"),
    ("{what|which} is the {largest|biggest} land animal|{which|what} animal is the {largest|biggest|heaviest} on land", "The largest land animal is the elephant.", "elephant"),
    ("{what|which} is the fastest {animal|land animal}{| on Earth| in the world}|{which|what} animal {is the fastest|runs fastest|can run the fastest}", "The fastest land animal is the cheetah.", "cheetah"),
    ("{what|which} is the tallest animal{| on Earth| in the world}|{which|what} animal is the tallest{| of all}|{which|what} animal has {the longest|a very long} neck", "The tallest animal is the giraffe.", "giraffe"),
    ("{what|which} is the slowest animal|{which|what} animal is {very slow|the slowest}", "The sloth is one of the slowest animals.", "sloth"),
    ("{what|which} is the {largest|biggest} country{| on Earth| in the world}|{which|what} country is the {largest|biggest}{| of all}", "The largest country is Russia.", "Russia"),
    ("{what|which} is the smallest country{| on Earth| in the world}|{which|what} country is the smallest{| of all}", "The smallest country is Vatican City.", "Vatican"),
    ("{what|which} is the {largest|biggest} continent|{which|what} continent is the {largest|biggest}", "The largest continent is Asia.", "Asia"),
    ("{what|which} is the {largest|biggest|hottest} desert{| in the world|}", "The Sahara in Africa is the largest hot desert.", "Sahara"),
    ("{at what temperature|when|at how many degrees} does water {boil|start to boil|begin to boil}|what is the boiling point of water|how hot is boiling water", "Water boils at 100 degrees Celsius.", "100"),
    ("{at what temperature|when|at how many degrees} does water {freeze|turn into ice|start to freeze}|what is the freezing point of water", "Water freezes at 0 degrees Celsius.", "0"),
    ("what is H2O|what does H2O mean|what does H2O stand for", "H2O is water.", "water"), ("what is {the chemical {formula|symbol} {of|for} water|water in chemistry}", "The formula of water is H2O.", "H2O"),
    ("what is the {chemical |}symbol {of|for} gold|how do chemists write gold", "The symbol for gold is Au.", "Au"), ("what is the {chemical |}symbol {of|for} {oxygen}", "The symbol for oxygen is O.", "O"),
    ("what is the {chemical |}symbol {of|for} iron", "The symbol for iron is Fe.", "Fe"), ("what is the {chemical |}symbol {of|for} silver", "The symbol for silver is Ag.", "Ag"),
    ("how fast is light|what is the speed of light|how fast does light travel", "Light travels about 300000 kilometers in a second.", "300000"),
    ("why is the sky blue|what makes the sky blue", "The sky is blue because the air scatters blue light the most.", "air"),
    ("why is {grass|a leaf} green|why are {leaves|plants} green", "Plants are green because of chlorophyll.", "chlorophyll"),
    ("why do we sleep|why do people sleep", "We sleep because the body and the brain need rest.", "rest"), ("why does it rain|where does rain come from", "It rains when the drops in a cloud become too heavy.", "clouds"),
    ("what do bees {make|produce|give us}|what is made by bees|which food comes from bees", "Bees make honey.", "honey"), ("{who|what} makes honey|which {insect|animal} makes honey", "Bees make honey.", "bees"),
    ("{which|what} animal says moo|what goes moo|who says moo", "A cow says moo.", "cow"), ("{which|what} animal {says meow|meows|purrs}|what goes meow", "A cat says meow.", "cat"), ("{which|what} animal {says woof|barks}|what goes woof", "A dog says woof.", "dog"),
    ("{which|what} animal {says quack|quacks}", "A duck says quack.", "duck"), ("{which|what} animal {says oink|oinks}", "A pig says oink.", "pig"), ("{which|what} animal {says baa|gives wool|gives us wool}", "A sheep gives wool and says baa.", "sheep"),
    ("{which|what} animal {gives milk|gives us milk}|where does milk come from", "Milk comes from the cow.", "cow"), ("{which|what} {animal|bird} lays eggs for {us|breakfast}|where do eggs come from", "Eggs come from hens.", "hens"),
    ("{which|what} animal has a trunk", "The elephant has a trunk.", "elephant"), ("{which|what} animal has {stripes|black and white stripes}", "The zebra has black and white stripes.", "zebra"), ("{which|what} animal {has a hump|lives in the desert}", "The camel has a hump and lives in the desert.", "camel"),
    ("{which|what} animal {has eight legs|spins webs|makes a web}", "The spider has eight legs and spins webs.", "spider"), ("{which|what} animal jumps and has a pouch", "The kangaroo has a pouch.", "kangaroo"), ("{which|what} animal is the king of the {jungle|animals}", "The lion is called the king of the animals.", "lion"),
    ("is a whale a fish|are whales fish", "No, a whale is a mammal.", "no"), ("is a dolphin a fish|are dolphins fish", "No, a dolphin is a mammal.", "no"), ("is a spider an insect|are spiders insects", "No, a spider is an arachnid.", "no"), ("is a bat a bird|are bats birds", "No, a bat is a mammal.", "no"),
    ("is a penguin a bird|are penguins birds", "Yes, a penguin is a bird.", "yes"), ("is a tomato a {fruit|berry}", "Yes, a tomato is a fruit.", "yes"), ("is the {sun|Sun} a star", "Yes, the sun is a star.", "yes"), ("is the {sun|Sun} a planet", "No, the sun is a star.", "no"), ("is the moon a {planet|star}", "No, the moon goes around the Earth.", "no"),
    ("is ice {hot or cold|cold or hot}", "Ice is cold.", "cold"), ("is fire {hot or cold|cold or hot}", "Fire is hot.", "hot"), ("is snow {hot or cold|cold or hot}", "Snow is cold.", "cold"), ("is the sun {hot or cold|cold or hot}", "The sun is very hot.", "hot"), ("is sugar {sweet or sour|sour or sweet}", "Sugar is sweet.", "sweet"), ("is a lemon {sweet or sour|sour or sweet}", "A lemon is sour.", "sour"),
    ("is an elephant {big or small|small or big}", "An elephant is big.", "big"), ("is an ant {big or small|small or big}", "An ant is small.", "small"), ("is a feather {heavy or light|light or heavy}", "A feather is light.", "light"), ("is a stone {hard or soft|soft or hard}", "A stone is hard.", "hard"), ("is night {dark or light|light or dark}", "Night is dark.", "dark"),
    ("is ice cold|is snow cold", "Yes, it is cold.", "yes"), ("is fire hot|is the sun hot", "Yes, it is very hot.", "yes"), ("is fire cold|is the sun cold", "No, it is very hot.", "no"), ("is the sky {blue}", "Yes, the sky is blue.", "yes"), ("is the sky {green|red|purple}", "No, the sky is blue.", "no"), ("is grass green", "Yes, grass is green.", "yes"), ("is grass {blue|red|purple}", "No, grass is green.", "no"), ("is snow white", "Yes, snow is white.", "yes"), ("is snow {black|red}", "No, snow is white.", "no"),
    ("is a {dog|cat|horse|cow} an animal", "Yes, it is an animal.", "yes"), ("is a {table|chair|rose|car} an animal", "No, it is not an animal.", "no"), ("can {birds|planes|bees} fly", "Yes, they can fly.", "yes"), ("can {dogs|cats|elephants|pigs|horses} fly", "No, they cannot fly.", "no"), ("can {fish|dolphins|ducks} swim", "Yes, they can swim.", "yes"), ("do {fish|sharks} live in water", "Yes, fish live in water.", "yes"), ("is the Earth round", "Yes, the Earth is round.", "yes"), ("is the Earth flat", "No, the Earth is round.", "no"),
    ("is water wet", "Yes, water is wet.", "yes"), ("is Akunu {fast|good}", "Yes, I think so. But I am not neutral: I am its little model.", "yes"), ("is {January|July|March} a month", "Yes, it is a month.", "yes"), ("is {Monday|Sunday|Friday} a month", "No, it is a day of the week.", "no"),
    ("{where is|in which city is|in what city is} the Eiffel Tower|where can I see the Eiffel Tower", "The Eiffel Tower is in Paris.", "Paris"), ("{where is|in which city is|in what city is} the Colosseum", "The Colosseum is in Rome.", "Rome"), ("{where are|in which country are} the pyramids", "The great pyramids are in Egypt.", "Egypt"), ("{where is|in which city is} Big Ben", "Big Ben is in London.", "London"), ("where is the {Statue of Liberty|Empire State Building}", "It is in New York.", "New York"),
    ("where do penguins live|where is the home of penguins|in which place do penguins live", "Most penguins live in the south, many of them in Antarctica.", "Antarctica"), ("where do {polar bears} live", "Polar bears live in the Arctic.", "Arctic"), ("where do kangaroos live", "Kangaroos live in Australia.", "Australia"), ("where do camels live", "Camels live in the desert.", "desert"), ("where do {fish|whales|sharks} live", "They live in water.", "water"), ("where do {monkeys} live", "Monkeys live in the jungle.", "jungle"),
    ("how many continents are there|how many continents does the Earth have|number of continents", "There are 7 continents on Earth.", "7"), ("how many days {are in a week|are there in a week|does a week have|has a week}|how long is a week", "There are 7 days in a week.", "7"), ("how many hours {are in a day|are there in a day|does a day have|has a day}|how long is a day", "There are 24 hours in a day.", "24"), ("how many minutes {are in an hour|are there in an hour|does an hour have|has an hour}|how long is an hour", "There are 60 minutes in an hour.", "60"), ("how many seconds {are in a minute|are there in a minute|does a minute have|has a minute}", "There are 60 seconds in a minute.", "60"), ("how many months {are in a year|are there in a year|does a year have|has a year}", "There are 12 months in a year.", "12"), ("how many days {are in a year|are there in a year|does a year have|has a year}|how long is a year", "There are 365 days in a year.", "365"), ("how many weeks {are in a year|are there in a year|does a year have|has a year}", "There are 52 weeks in a year.", "52"), ("how many letters {are in the alphabet|are there in the alphabet|does the alphabet have}", "There are 26 letters in the alphabet.", "26"), ("how many seasons are there|how many seasons does a year have", "There are 4 seasons in a year.", "4"),
    ("what are the primary colors|which colors are primary|name the primary colors|what are the three primary colors", "The primary colors are red, yellow and blue.", ""), ("what are the seasons|name the four seasons|which seasons are there|what are the four seasons", "The four seasons are spring, summer, autumn and winter.", ""), ("what are the days of the week|name the days of the week|which days are in a week", "The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.", ""), ("what days are {the weekend|on the weekend|in a weekend}|which days {make up|are} the weekend|name the days of the weekend", "The weekend is Saturday and Sunday.", ""), ("what are the five senses|name the five senses", "The five senses are sight, hearing, smell, taste and touch.", ""),
    ("what is the {meaning|sense} of life|why are we here", "People say that it is 42. I only know small things.", "42"), ("which came first, the chicken or the egg", "That is an old riddle. I think it was the egg.", "egg"), ("what is the largest number|what is the biggest number", "There is no largest number.", "none"), ("what is pi|what is the value of pi", "Pi is about 3.14.", "3.14"),
    ("what {currency|money} {does Japan use|is used in Japan|do they use in Japan}", "The currency of Japan is the yen.", "yen"), ("what {currency|money} {does the USA use|is used in the USA|do they use in America}", "The currency of the United States is the dollar.", "dollar"), ("what {currency|money} {does Germany use|is used in Germany|is used in Italy|does France use}", "They use the euro there.", "euro"), ("what {currency|money} {does England use|is used in England|is used in the UK}", "The currency of England is the pound.", "pound"),
    ("what do you say to greet someone|how do you greet someone", "You say hello.", "hello"), ("what is the color of {snow|milk}|what color are polar bears", "White.", "white"), ("what do plants need{| to grow}", "Plants need water, light and air.", "water"), ("what do {fish|birds} have instead of arms", "Birds have wings, and fish have fins.", ""), ("what {falls|comes} from the sky in winter", "Snow falls in winter.", "snow"), ("which season is the {coldest}|what is the coldest season", "Winter is the coldest season.", "winter"), ("which season is the {hottest|warmest}|what is the warmest season", "Summer is the warmest season.", "summer"),
    ("what is the {hello|usual} first program|what does the first program print", "The first program prints \"Hello, world!\"", "Hello"), ("{how|what} is the shortest month|which month is the shortest|which month has 28 days", "February is the shortest month.", "February"), ("in which month is Christmas|when is Christmas", "Christmas is in December.", "December"), ("when is New Year's Day|when does the year begin", "The year begins on January 1.", "January"),
]  # fmt: skip

QUIZ = _QUIZ + TRIVIA + TRIVIA_MORE

# how words of other languages are said: English word -> language -> word
TRANSLATIONS: dict[str, dict[str, str]] = {
    "hello": {"French": "bonjour", "Spanish": "hola", "German": "hallo", "Italian": "ciao"}, "thank you": {"French": "merci", "Spanish": "gracias", "German": "danke", "Italian": "grazie"},
    "yes": {"French": "oui", "Spanish": "sí", "German": "ja", "Italian": "sì"}, "no": {"French": "non", "Spanish": "no", "German": "nein", "Italian": "no"}, "cat": {"French": "chat", "Spanish": "gato", "German": "Katze", "Italian": "gatto"},
    "dog": {"French": "chien", "Spanish": "perro", "German": "Hund", "Italian": "cane"}, "water": {"French": "eau", "Spanish": "agua", "German": "Wasser", "Italian": "acqua"}, "house": {"French": "maison", "Spanish": "casa", "German": "Haus", "Italian": "casa"},
    "goodbye": {"French": "au revoir", "Spanish": "adiós", "German": "auf Wiedersehen", "Italian": "arrivederci"}, "bread": {"French": "pain", "Spanish": "pan", "German": "Brot", "Italian": "pane"}, "good morning": {"French": "bonjour", "Spanish": "buenos días", "German": "guten Morgen", "Italian": "buongiorno"},
}  # fmt: skip

SYNONYMS = dict(
    pair.split(":") for pair in
    "big:large small:little happy:glad sad:unhappy fast:quick quick:fast smart:clever begin:start end:finish nice:pleasant pretty:beautiful "
    "hard:difficult easy:simple angry:mad tired:sleepy scared:afraid funny:amusing rich:wealthy strong:powerful quiet:silent loud:noisy cold:chilly "
    "hot:warm old:ancient brave:courageous strange:odd wrong:incorrect right:correct help:assist speak:talk look:see jump:leap shout:yell cry:weep "
    "buy:purchase close:shut large:big little:small glad:happy beautiful:pretty clever:smart difficult:hard start:begin finish:end huge:enormous tiny:small "
    "house:home gift:present road:street stone:rock child:kid rabbit:bunny ship:boat forest:woods".split()
)  # fmt: skip
PAST = dict(
    pair.split(":") for pair in
    "go:went eat:ate see:saw run:ran come:came take:took give:gave write:wrote read:read speak:spoke sing:sang swim:swam drink:drank buy:bought "
    "think:thought bring:brought catch:caught teach:taught find:found make:made say:said tell:told sleep:slept keep:kept leave:left lose:lost win:won "
    "begin:began break:broke fly:flew grow:grew know:knew draw:drew fall:fell feel:felt meet:met send:sent sit:sat stand:stood wear:wore play:played "
    "walk:walked talk:talked jump:jumped look:looked work:worked help:helped dance:danced live:lived love:loved cook:cooked be:was have:had do:did get:got put:put".split()
)  # fmt: skip
RHYMES = [
    set(line.split())
    for line in "cat hat bat mat rat sat fat flat|dog log fog frog|house mouse|tree bee see free sea key|light night right bright kite white|day play say way stay|sun fun run one done|moon soon spoon noon|star car far jar|fish dish wish|book look cook hook|cake lake make snake take|bear hair chair care fair|rain train plane brain|king ring sing wing thing|fox box socks rocks|goat boat coat note|pen hen ten men|bed red head bread|ball tall wall fall small|boy toy joy|cold gold old bold|snow grow slow know go|nose rose toes close|sky fly high my why".split("|")
]  # fmt: skip
BLANKS: list[tuple[str, str]] = [
    ("The cat drinks ___.", "milk"), ("The dog chases the ___.", "cat"), ("The sun is very ___.", "hot"), ("Ice is ___.", "cold"), ("The sky is ___.", "blue"), ("Grass is ___.", "green"), ("Birds can ___.", "fly"), ("Fish can ___.", "swim"), ("Bees make ___.", "honey"), ("A week has ___ days.", "seven"), ("A dog has ___ legs.", "four"),
    ("A spider has ___ legs.", "eight"), ("The capital of France is ___.", "Paris"), ("The opposite of big is ___.", "small"), ("The baker bakes ___.", "bread"), ("The cow gives ___.", "milk"), ("The hen lays an ___.", "egg"), ("Snow is ___.", "white"), ("We see with our ___.", "eyes"), ("We hear with our ___.", "ears"), ("The teacher works at a ___.", "school"),
    ("The farmer works on a ___.", "farm"), ("At night we see the moon and the ___.", "stars"), ("The ship sails on the ___.", "sea"), ("I brush my ___ every morning.", "teeth"), ("She reads a ___.", "book"), ("He drinks a cup of ___.", "tea"), ("A bird builds a ___.", "nest"), ("The king wears a ___.", "crown"), ("A rabbit has long ___.", "ears"),
]  # fmt: skip
IN_SENTENCE = [
    "The $w was very nice to see.", "I thought about the word $w today.", "My friend told me about $w yesterday.", "Everyone likes the word $w.",
]  # fmt: skip


def topic(rng: Random) -> Turn:
    """What a thing is, or something about it."""
    name = rng.choice(list(TOPICS))
    bare = name.removeprefix("a ").removeprefix("an ")
    plural = PLURALS.get(bare) if bare != name else None
    asks = ["What is $t?", "What's $t?", "$t: what is {it|that}?", "$^t is what?", "What do people mean by $t?", "I don't know what $t is. Can you tell me?", "{In short|Briefly|In simple words}, what is $t?", "Say what $t is.", "Tell a child what $t is.", "What would you say $t is?", "What exactly is $t?", "Do you know anything about $t?", "Tell me about $t.", "Describe $t.", "Explain what $t is.", "Do you know what $t is?", "Can you explain $t?", "What do you know about $t?", "Explain $t to {me|a child}.", "what {exactly |}is $t", "Define $t.", "Say something about $t.", "Give me a {definition|description} of $t.", "What can you tell me about $t?", "What does the word $b mean?", "Tell me something about $t.", "Who or what is $t?", "Explain $b simply."]  # fmt: skip
    if name in _DOES:
        asks += ["What does $t do?", "What does $t do?", "What is the job of $t?"]
    if plural:
        asks += ["What are $p?", "Tell me about $p.", "Describe $p.", "What do you know about $p?"]
    ask = write(rng, rng.choice(asks), {"t": name, "b": bare, "p": plural or bare})
    return Turn("topics", typed(rng, ask), TOPICS[name], f"topic {ask.lower()}", None)


def quiz(rng: Random) -> Turn:
    """A question of general knowledge."""
    asks, answer, value = rng.choice(QUIZ)
    ask = write(rng, "{" + asks + "}")
    ask = ask[0].upper() + ask[1:] + ("." if ask.startswith("name ") else "?")
    return Turn("facts", typed(rng, ask), answer, f"quiz {ask.lower().rstrip('?.')}", value or None)


def word_lore(rng: Random) -> Turn:
    """Synonyms, past tenses, rhymes, blanks to fill, sentences with a word, words of other languages."""
    kind = rng.randrange(7)
    if kind == 0:
        w, v = rng.choice(list(SYNONYMS.items()))
        ask = "{What is a synonym {of|for} $w|Give me a synonym {of|for} $w|Another word for $w|Another way to say $w|A different word for $w|What else can I say for $w|A word like $w|$w, in other words|What word means the same as $w|Which word is like $w|Instead of $w, I could say what|Replace $w by another word|Find another word for $w|Say $w with another word|Name a word that means $w|What is another word for $w|Synonym {of|for} $w|Which word means the same as $w|Say $w in another way|Find a word that means $w}?"
        answer = "Another word for $w is $v."
    elif kind == 1:
        w, v = rng.choice(list(PAST.items()))
        ask = "{What is the past tense of $w|Past tense of $w|Give me the past tense of $w|What is the past of $w|Put $w into the past tense|How do you say $w in the past|What is the past form of $w}?"
        answer = "The past tense of $w is $v."
    elif kind == 2:
        group = sorted(rng.choice(RHYMES))
        w = rng.choice(group)
        v = next(x for x in group if x != w)
        ask = "{What rhymes with $w|Give me a word that rhymes with $w|Which word rhymes with $w|Find a rhyme for $w|Tell me a rhyme for $w|What is a word that rhymes with $w|Name something that rhymes with $w|A rhyme for $w}?"
        answer = "$^v rhymes with $w."
    elif kind == 3:
        text, v = rng.choice(BLANKS)
        blank = rng.choice(["___", "___", "...", "____", "[blank]"])
        lead = write(
            rng,
            "{Fill in the blank|Complete the sentence|Fill the gap|Complete|What is the missing word|Finish this sentence|Which word is missing here}{:|:|.}",
        )
        full = text.replace("___", v)
        return Turn("words", f"{lead} {text.replace('___', blank)}", full, f"blank {lead} {text}", v)
    elif kind == 4:
        w = rng.choice([*PLURALS, *ADJECTIVES, *PAST])
        v = ""
        if w in ADJECTIVES:
            answer = rng.choice(
                [
                    "Sometimes it is good to be $w.",
                    "It can be nice to be $w.",
                    "The little house is not always $w.",
                ][:2]
            )
            answer = "The old man in the story was very $w."
        elif w in PAST:
            answer = "Today I want to $w with my friends."
        else:
            answer = "I can see a $w in the garden."
        ask = "{Use $w in a sentence|Put {the word |}$w {in|into} a sentence|Make a sentence with {the word |}$w|Write a sentence with {the word |}$w|Write a sentence that contains {the word |}$w|Can you make a sentence with $w|Give me an example sentence for $w}."
    elif kind == 5:
        w = rng.choice(list(TRANSLATIONS))
        language = rng.choice(list(TRANSLATIONS[w]))
        v = TRANSLATIONS[w][language]
        ask = f"{{How do you say $w in {language}|What is $w in {language}|Translate $w {{to|into}} {language}|What is the {language} word for $w|{language} for $w|Say $w in {language}|Tell me the {language} word for $w}}?"
        answer = f'In {language}, "$w" is "$v".'
    else:
        w = rng.choice(list(PLURALS))
        v = PLURALS[w]
        ask = "{Make {this|the word} plural: $w|Plural form of $w|Give me the plural form of $w|What do you call more than one $w|What is more than one $w|Two of a $w are called what|How do I write $w in the plural|Turn $w into a plural|Write $w in the plural}?"
        answer = "The plural of $w is $v."
    env = {"w": w, "v": v}
    ask = write(rng, ask, {"w": rng.choice([w, w, f'"{w}"'])})
    if not ask.startswith(("What", "Which", "How", "Can", "Two")):
        ask = ask.rstrip("?.") + "."
    answer = write(rng, answer, env)
    return Turn("words", typed(rng, ask), answer[0].upper() + answer[1:], f"lore {ask.lower()}", v or None)
