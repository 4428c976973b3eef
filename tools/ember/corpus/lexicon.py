# ruff: noqa: E501, SIM905 - word lists read better whole
"""Common English words, beyond those of the stories: what people put into a question, a list or a request."""

from __future__ import annotations

from random import Random

from .words import BOYS, GIRLS, NOUNS, PLURALS, RESERVED_NAMES, invented_word

THINGS = """alarm album ankle apron armchair arrow atlas axe backpack badge bag bandage banner barrel basin basket bat battery beach bead beard bell belt bicycle bike bill biscuit blanket blender block blouse board
bolt bone boot bottle bowl box bracelet brick broom bubble bucket buckle bulb button cabin cable cage cake calendar camera candle cane cannon canoe canvas cap cape card carpet carriage cart cello chain chalk chest
cigar clock closet coat coin collar comb compass computer cookie cooler cord cork costume couch cradle crane crate crayon crown cube curtain cushion dagger dart desk diary dice dish doll dress drill drone
drum duster earring easel engine envelope eraser fan faucet feather fence fiddle file film flask flute folder fork fountain frame freezer fridge gate gift glove goggles gown grater guitar hairbrush hammock
handle harp headphones heater helmet hook horn hose iron jacket jar jeans jewel jug keyboard kite knapsack knife laptop lantern lawn leash lens lever lid lock locket machine magazine magnet mailbox mallet marble mask mast
mat mattress medal microphone mop motor mug napkin necklace needle net newspaper notebook oar oven package paddle page paint pan parcel passport pen perfume phone photo pillow pin pipe pistol pitcher plug pocket poster pot printer
prize pump puppet purse puzzle quilt racket radio raft rail rake razor receipt ribbon rifle ring robe rocket rod rug ruler saddle sail sandal saucepan saw scale scooter screen screw seat shampoo shawl shelf shield shirt shoe
shovel shower sink skate skirt sled slipper sock sofa spear speaker spoon stamp stapler statue stereo stick stool stove string suit suitcase sweater switch sword tablet tank tape teapot telescope tent thermos thread ticket tie tile tire
toaster torch towel toy tractor tray trophy truck trumpet trunk tube umbrella uniform urn van vase vest wagon wallet wardrobe watch wheel whip whistle wig wire wrench zipper""".split()
FOODS = """apple bacon bagel banana bean beef berry bread broccoli broth burger butter cabbage cake candy carrot celery cereal cheese cherry chicken chili chocolate cinnamon cocoa coconut cookie corn cracker cream cucumber
curry dough duck dumpling egg eggplant fig fish flour fries garlic ginger grape gravy ham hazelnut honey jam jelly kale kebab ketchup lamb lasagna leek lemon lentil lettuce lime lobster mango meat melon milk mint mushroom mustard
mutton noodle nut oatmeal olive omelet onion orange pancake papaya parsley pasta pastry pea peach peanut pear pepper pickle pie pineapple pizza plum popcorn pork porridge potato pretzel pudding pumpkin quince radish raisin
raspberry rice risotto roll saffron salad salami salmon salt sandwich sauce sausage shrimp soup soy spaghetti spinach squash steak stew strawberry sugar sushi syrup taco toast tofu tomato trout tuna turkey turnip vanilla vinegar waffle walnut
watermelon wheat yam yogurt zucchini""".split()
DRINKS = "tea coffee milk juice water lemonade cocoa wine beer soda cider espresso latte smoothie punch cola".split()
CREATURES = """alligator ant antelope ape bat bear beaver bee beetle bird bison boar buffalo bull butterfly calf camel canary cat caterpillar chick chicken cobra cod cow coyote crab crane cricket crocodile crow deer dog dolphin donkey dove
dragonfly duck eagle eel elephant elk falcon ferret finch flamingo fly fox frog gecko gerbil giraffe goat goldfish goose gorilla grasshopper hamster hare hawk hedgehog hen heron hippo horse hyena iguana jaguar jellyfish kangaroo kitten
koala lamb lemur leopard lion lizard llama lobster lynx magpie mole monkey moose mosquito moth mouse mule newt octopus ostrich otter owl ox oyster panda panther parrot peacock pelican penguin pig pigeon pony poodle puma puppy rabbit raccoon
ram rat raven reindeer rhino robin rooster salmon scorpion seal shark sheep skunk sloth snail snake sparrow spider squid squirrel stork swallow swan tiger toad trout turkey turtle vulture walrus wasp weasel whale wolf wombat worm zebra""".split()
PLACES = """airport attic bakery balcony bank bar barn basement bathroom bay beach bedroom bridge cabin cafe camp canal castle cathedral cave cellar church cinema circus city clinic closet club coast college corner corridor cottage court
courtyard desert dock factory farm field forest fortress gallery garage garden gym hall harbor hill hospital hotel house inn island jail jungle kitchen lab lake library lighthouse lobby mall market meadow mill mine monastery mountain museum
nursery office orchard palace park pharmacy pier platform playground pond pool port prison pub restaurant river roof ruins school shed shop shore square stable stadium stage station street studio studio subway supermarket temple terrace
theater tower town tunnel university valley village vineyard warehouse yard zoo""".split()
PEOPLE = """accountant actor actress architect artist astronaut athlete aunt author baker banker barber boss boy brother builder butcher captain carpenter cashier chef child clerk clown coach colleague cook cousin customer dancer daughter dentist
designer detective director diver doctor driver editor electrician engineer father farmer fisherman florist friend gardener girl grandfather grandmother guard guest guide hairdresser hunter husband janitor jeweler journalist judge king knight
lawyer librarian magician manager mayor mechanic merchant miner model mother musician nanny neighbor nephew niece nurse painter passenger pharmacist photographer pianist pilot pirate plumber poet porter president priest prince princess
professor programmer queen receptionist reporter sailor scientist secretary sheriff shepherd singer sister smith soldier son spy student surgeon tailor teacher thief tourist trainer translator uncle vet visitor waiter waitress wife witch wizard writer""".split()
QUALITIES = """angry bitter black blind blue bold brave brief bright broad broken brown busy calm careful cheap clean clear clever cold cool crazy cruel curly dark deep dirty dizzy dry dull dusty eager early easy empty fair famous fancy fast fat fierce final fine firm
flat foggy free fresh full funny gentle giant glad golden good grand great green gray grumpy happy hard healthy heavy high hollow honest hot huge humble hungry icy jolly kind large late lazy light little lonely long loose loud lovely low lucky
mad merry mighty mild misty modern narrow neat new nice noisy odd old orange pale perfect pink plain polite poor pretty proud purple quick quiet rare raw ready red rich ripe rough round royal rude rusty sad safe salty secret shallow sharp
shiny short shy sick silent silly silver simple sleepy slim slow small smart smooth soft sour spicy square steep sticky stiff still strange strict strong sudden sunny sweet swift tall tame tasty tender thick thin tidy tight tiny tired tough true ugly
useful warm weak wet white whole wicked wide wild windy wise wonderful wooden wrong yellow young""".split()
MANNERS = "again almost already also always away badly carefully early easily finally gladly here inside later loudly maybe never nicely now often once outside quickly quietly rarely slowly softly sometimes soon still suddenly there today together tomorrow tonight twice very well yesterday".split()
SMALL = "a about after all an and any are around as at be because before behind below between but by can down each every for from had has have he her here his how i if in into is it just like many me more most must my near no not of off on one only or our out over she should so some such than that the their them then there these they this those through to too under until up us was we were what when where which while who why will with without you your".split()
# what people write all the time, beside the names of things
FREQUENT = """able above across act add afraid age ago agree ahead alive alone along aloud alright although amazing among angle announce another anybody anyone anything anyway apart appear apply area arrange arrive aside ask asleep attack
attempt attend avoid awake aware awful baby back backward bad bake band base basic become bed beg begin behave believe belong bend beneath beside best better beyond bid bite blame bless blow boil born both bother bound bow brain
brand breathe bring burst bus but bye call calmly cancel capital captain care case cash cast central certain chair charge chase chat check cheer chief chip claim clap classic clearly click climb close collect come comfort common
complain complete connect consider contact contain continue cool correct cough count couple cross crowd cry curious daily dance dangerous dare date deal dear decide declare delay deliver deny describe desire develop different
difficult direct disappear dive divide doubtful down drag drive due during eager earn else empty end enjoy enough enter equal escape especially even ever everybody everyone everything everywhere exact excellent except excited
excuse exist expect explain explore express extra face fail fall false familiar far farewell farther favorite feed feel few fill finish fit flow fold follow foolish foreign forever forgive form forth forward fourth frankly frozen
full funny further gather general gentleman get give go golden gone goodbye grow guess habitual hand hang happen hardly harm hear hello herself himself hit home hop hopefully however hurry hurt ill imagine immediately important
improve include increase indeed instead interesting into invite itself join joke judge jump just keep kiss know lack last laugh lay lead leaf leak lean learn least leave lend less let lie listen live local lock loose lose lot low
main maker man manage many mark married marry matter mean meanwhile meet melt mess middle mind mix modern more mouth move much must myself name natural near nearly necessary need neither never next nobody none nor normal nothing
notice nowhere obey obvious offer official often okay opposite ordinary other otherwise ought ours ourselves out overall owe own pass patience pause pay people perhaps permit person plan play please plenty possible pour prefer
prepare pretend prevent private probably promise proper protect provide public push put quit quite rather reach real realize really refuse relax remain reply rest ride ring rise roar roll rub run rush same sample satisfy save say
scare scream search second seem seldom select send serious set several shall shine shout shut sigh similar since sing single sit skip sleep slide slip smell snap sneeze so somebody someone something somewhere sorry sort speak
spell spend spill spin spoil stand stare start stay step stop straight such suddenly suggest suppose sure surely surround swear sweep swim talk taste teach tear tell than thank thanks think thirsty though through throughout thus
tie till together tomorrow tonight toward try tune turn twice understand unless until upon upset upstairs urgent us usual usually vanish various wait wake walk wander warn waste wave we wear weep welcome well west whatever
whenever wherever whether whisper whoever whole whose why win wink within without wonder work worse worst worth wound yell yes yet you yourself""".split()
IDEAS = """accident advice age air amount anger animal answer army art attention autumn balance battle beauty birth bottom breakfast breath business calm care case cause center century chance change choice class climate cloud color company control copy cost
country courage course culture danger date dawn day death debt decade degree depth detail dinner direction dirt distance doubt dream dust duty earth echo edge effort energy error event evening example exercise fact fame family fashion fear fever fight
fire flood floor fog freedom fruit fun future game glory goal grass ground group growth habit half harmony harvest hate health heat height help history hobby holiday honor hope hour humor hunger idea inch interest job journey joy judgment
justice kindness kingdom knowledge language laughter law leader league lesson level liberty life light limit line logic love luck lunch magic market mathematics meaning measure medicine memory mercy message middle midnight mind minute mistake mistake moment
money month mood morning motion mystery name nation nature night noise noon number opinion order pain party past pattern peace people period person picture piece place plan planet pleasure poem point poison police power practice present pressure price
pride problem profit program progress promise purpose quality quantity question race rain reason recipe record relief religion respect rest result reward rhythm riddle right risk romance rule safety sand science season second secret sense
shade shadow shape silence skill sky sleep smile smoke snow society song sound source space speech speed spirit sport spring star start steam step storm story stranger strength style subject success summer sunlight sunrise sunset surprise symbol
system talent taste team temper test theory thing thought thunder tide time title tomorrow tone top topic trade tradition trick trip trouble truth turn twin union universe value victory view virus visit voice volume vote wage walk war warmth water
wave way wealth weather week weekend weight wind winter wisdom wish wonder word work world worry year youth zero""".split()
# base: past; all of them take a thing
ACTS = dict(
    pair.split(":") for pair in
    "admire:admired borrow:borrowed break:broke bring:brought build:built burn:burned bury:buried buy:bought carry:carried catch:caught choose:chose clean:cleaned collect:collected copy:copied cover:covered damage:damaged deliver:delivered design:designed "
    "destroy:destroyed discover:discovered draw:drew drop:dropped examine:examined fetch:fetched find:found fix:fixed forget:forgot get:got grab:grabbed hide:hid hold:held ignore:ignored inspect:inspected invent:invented kick:kicked knock:knocked "
    "lift:lifted like:liked lose:lost love:loved make:made miss:missed move:moved need:needed notice:noticed open:opened order:ordered pack:packed paint:painted pick:picked polish:polished print:printed pull:pulled push:pushed receive:received recognize:recognized "
    "remember:remembered remove:removed rent:rented repair:repaired replace:replaced return:returned sell:sold send:sent share:shared shake:shook show:showed sketch:sketched smash:smashed spot:spotted steal:stole store:stored study:studied take:took test:tested "
    "throw:threw touch:touched trade:traded use:used want:wanted wash:washed watch:watched wear:wore weigh:weighed win:won wipe:wiped wrap:wrapped".split()
)  # fmt: skip
EATS = {
    "eat": "ate",
    "cook": "cooked",
    "bake": "baked",
    "order": "ordered",
    "taste": "tasted",
    "serve": "served",
    "prepare": "prepared",
    "choose": "chose",
    "want": "wanted",
    "like": "liked",
}
NAMES = """Aaron Abel Abigail Ada Adele Agnes Aiden Aki Albert Aldo Alina Alma Amir Amy Ana Andre Andrew Angela Anita Anton Antonia Anya April Ariel Arthur Astrid Audrey Aurora Ava Axel Barbara Beatrice Benjamin Bernard Bianca Boris Brandon Brenda Brian Bridget
Brigitte Carla Carol Caroline Caspar Catherine Cecil Cesar Chang Charles Charlotte Chloe Chris Christina Cindy Claire Clark Claude Colin Connor Craig Cyril Dana Daria Darius Dean Deborah Dennis Derek Diana Diego Dieter Dirk Dmitri Donald Donna Doris Dorothy Duncan Dylan
Edgar Edith Edward Edwin Eileen Elias Elijah Elisa Elizabeth Ellen Elliot Elvira Emil Enzo Eric Erik Erin Ernest Esther Ethan Eugene Eva Evan Evelyn Fabian Farah Fiona Florian Frances Francis Franz Gabriel Gary Gavin Gemma Geoffrey Gerald Gina Giovanni Gordon Graham
Gregory Gustav Hamid Harold Harriet Hassan Heather Hector Heidi Helen Helga Herman Hilda Hiro Howard Hubert Ian Igor Ilse Ingrid Irene Irma Isabel Ismail Jacob Jade Jakob James Jana Jane Janet Jason Jean Jeff Jeremy Jerry Jessica Joan Jochen Johanna Jonathan Jordan Jorge
Joseph Joshua Joyce Judith Julian Justin Karen Karim Karin Karl Katja Keith Kelly Kevin Khalid Kim Klaus Kofi Lars Larry Latoya Lea Leila Leon Leonard Lewis Liv Lisa Livia Logan Lorenzo Lorna Louis Louise Lucia Ludwig Lydia Lynn Magda Malik Marcel Marco Marcus Margaret
Marina Mario Marta Martha Mateo Matilda Matthew Maurice Megan Melanie Melissa Meera Mercedes Michelle Miguel Mikhail Mila Mira Miriam Mohammed Monica Morgan Morris Nancy Naomi Natalie Natasha Nathan Neil Nelson Nicholas Nicole Nigel Nikolai Nolan Norbert Norman Odette Oksana Olaf
Oleg Olivia Orlando Otis Pablo Pamela Pascal Patricia Patrick Paula Pedro Pepe Philip Phoebe Raj Ramona Rachel Raymond Rebecca Regina Renata Rex Richard Rita Roberta Robin Rodney Roger Roland Roman Ronald Rosa Rose Roxana Roy Rupert Russell Ruth Ryan Sabine Salim Samantha
Samir Samuel Sasha Scott Sean Selma Sergei Shane Sharon Sheila Shirley Sigrid Silvia Sonia Stanley Stefan Steven Stuart Susan Svetlana Sven Sybil Tamara Tanya Tara Tatiana Ted Teresa Terry Thelma Theresa Thomas Tina Tobias Todd Tomas Tony Tracy Travis Trevor Tristan Ulrich Ursula
Valerie Vanessa Vernon Veronica Victoria Vincent Viola Virginia Vivian Vladimir Wanda Warren Wayne Werner William Wolfgang Xavier Yolanda Yosef Yusuf Yvonne Zachary Zara Zelda Zoran""".split()
SURNAMES = """Adams Allen Anderson Baker Becker Bell Bennett Berg Black Bond Brown Burns Carter Chen Clark Cohen Cole Cooper Costa Cruz Davis Diaz Dubois Evans Fischer Ford Foster Fox Garcia Gomez Gray Green Gupta Hall Hansen Harris Hill Hoffman Hughes Ito Jackson Jensen
Johnson Jones Kelly Khan Kim King Klein Kowalski Kumar Larsen Lee Lewis Lopez Marino Martin Meyer Miller Mitchell Moore Morris Murphy Nakamura Nelson Nguyen Novak Olsen Ortiz Park Parker Patel Petrov Phillips Popov Price Quinn Ramos Reed Reyes Rivera Roberts Romano Rossi
Russo Sanchez Santos Sato Schmidt Schneider Schulz Scott Silva Singh Smith Stewart Stone Suzuki Tanaka Taylor Thompson Torres Tucker Turner Vogel Wagner Walker Wang Ward Watson Weber White Williams Wilson Wolf Wong Wood Wright Yamada Young Zhang Ziegler""".split()
CITIES = """Aberdeen Accra Adelaide Algiers Amman Amsterdam Ankara Antwerp Athens Atlanta Auckland Austin Baghdad Baku Bali Baltimore Bangkok Barcelona Basel Beijing Beirut Belfast Belgrade Bergen Berlin Bilbao Bogota Bombay Bonn Bordeaux Boston Brighton Brisbane Bristol Brussels Bucharest
Budapest Cairo Calgary Cambridge Canberra Caracas Cardiff Casablanca Chicago Cleveland Cologne Copenhagen Cork Dallas Damascus Delhi Denver Detroit Doha Dresden Dubai Dublin Durban Edinburgh Florence Frankfurt Galway Geneva Genoa Ghent Glasgow Granada Graz Hamburg Hanoi Havana Helsinki
Honolulu Houston Istanbul Jakarta Jerusalem Kabul Karachi Kiev Kingston Kyoto Lagos Lahore Leeds Leipzig Lima Lisbon Liverpool London Lyon Madrid Malaga Malmo Manchester Manila Marseille Melbourne Memphis Miami Milan Minsk Montreal Moscow Mumbai Munich Nairobi Naples Nashville
Nice Odessa Orlando Osaka Oslo Ottawa Oxford Palermo Paris Perth Philadelphia Phoenix Pisa Porto Portland Prague Quito Reykjavik Riga Rome Rotterdam Salzburg Santiago Sarajevo Seattle Seoul Seville Shanghai Singapore Sofia Stockholm Stuttgart Sydney Tallinn Tampa Tbilisi Tehran
Tokyo Toronto Toulouse Tripoli Tunis Turin Utrecht Valencia Vancouver Venice Verona Vienna Vilnius Warsaw Wellington York Zagreb Zurich""".split()
TWO_WORD_CITIES = [
    "New York", "Los Angeles", "San Francisco", "Cape Town", "Hong Kong", "Buenos Aires", "Rio de Janeiro", "Mexico City", "New Delhi", "Las Vegas", "San Diego", "Tel Aviv", "Abu Dhabi", "Saint Petersburg", "Kuala Lumpur",
]  # fmt: skip
LANGUAGES = "French German Spanish Italian Polish Greek Dutch Swedish Turkish Japanese Chinese Korean Arabic Hindi Russian Portuguese Danish Finnish Norwegian Czech Hungarian Hebrew Latin Thai Vietnamese Ukrainian Romanian Croatian Irish Welsh Swahili".split()
COLORS = "red blue green yellow purple orange white silver golden brown black pink gray violet turquoise beige".split()

NOUN_LIKE = sorted({*THINGS, *FOODS, *CREATURES, *PLACES, *PEOPLE, *IDEAS, *NOUNS, *PLURALS})
COMMON = sorted(
    {*NOUN_LIKE, *QUALITIES, *MANNERS, *ACTS, *ACTS.values(), *PLURALS.values(), *COLORS, *DRINKS}
)
_SAID = frozenset(RESERVED_NAMES)
FIRST_NAMES = sorted({*NAMES, *GIRLS, *BOYS} - _SAID)


def anyone(rng: Random) -> str:
    """A person's name: a common one, a rare one, one made of syllables, now and then with a surname or a title."""
    draw = rng.random()
    if draw < 0.68:
        return rng.choice(FIRST_NAMES)
    if draw < 0.86:
        return invented_word(rng).capitalize()
    if draw < 0.94:
        return f"{rng.choice(FIRST_NAMES)} {rng.choice(SURNAMES)}"
    return f"{rng.choice(('Mr.', 'Mrs.', 'Ms.', 'Dr.', 'Captain', 'Professor', 'Aunt', 'Uncle'))} {rng.choice([rng.choice(SURNAMES), rng.choice(FIRST_NAMES)])}"


def anywhere(rng: Random) -> str:
    """A town: a real one, or one that nobody has heard of."""
    draw = rng.random()
    if draw < 0.75:
        return rng.choice(CITIES)
    return rng.choice(TWO_WORD_CITIES) if draw < 0.83 else invented_word(rng).capitalize()


def any_word(rng: Random) -> str:
    """A word in lower case, common for the most part."""
    draw = rng.random()
    if draw < 0.62:
        return rng.choice(COMMON)
    if draw < 0.8:
        return rng.choice(FREQUENT)
    return rng.choice(SMALL) if draw < 0.87 else invented_word(rng)
