# ruff: noqa: E501 - lines of text read better whole
"""Reading: one or two people who do one thing after another, with verbs of all sorts, and what each of them did to what."""

from __future__ import annotations

from random import Random

from .grammar import write
from .scene_words import BOYS, GIRLS, Scene

# base:past:objects; "$h" is his or her
_ROWS = """light:lit:a candle,a lamp,the stove,a fire,the lantern,a match,the oil lamp|take off:took off:$h wet boots,$h coat,$h shoes,$h gloves,$h glasses,$h hat,$h ring|put on:put on:$h slippers,$h raincoat,a warm sweater,$h hat,an apron,a helmet,clean socks|turn on:turned on:the radio,the light,the heating,the oven,the fan,the television|turn off:turned off:the light,the radio,the engine,the tap,the alarm|pick up:picked up:a shell,the letter,a coin,the phone,a feather,the pieces,$h hat|put down:put down:the bag,the cup,the heavy box,$h pen,the newspaper|pour:poured:a cup of tea,a glass of milk,the coffee,some water,the soup into a bowl
eat:ate:some cheese,an apple,two sandwiches,a bowl of soup,the last pancake,a slice of cake,half a melon,some nuts|drink:drank:a glass of water,a cup of cocoa,some lemonade,the cold tea|bite:bit:the apple,a pencil,$h lip,$h nails|cut:cut:the bread,the hedge,the ribbon,$h finger,the rope,the cake,the grass|break:broke:a plate,the window,a branch,$h glasses,the vase,the ice,$h leg|tear:tore:the letter,a page,$h trousers,the curtain,the bag|sew:sewed:a button,a dress,a flag,the hole in the sock|knit:knitted:a scarf,a hat,two socks,a blanket
write:wrote:a letter,a poem,$h name,a postcard,a long list,the report|read:read:the newspaper,a comic,a letter from home,the sign,a book about ships,the map|draw:drew:a horse,a circle,a map,the house,a ship with sails,a funny face|paint:painted:the fence,a picture of a lake,the door,a wooden duck,the ceiling|sing:sang:a lullaby,an old song,a song about the sea,the second verse|play:played:the piano,a waltz,cards,the drum,chess with the neighbor|hear:heard:a strange noise,footsteps,the church bell,an owl,music,a knock|see:saw:a light,a deer,an old friend,a rainbow,smoke,two boats,a shooting star
find:found:a silver spoon,an old coin,the key,a nest,a book about birds,a glove,a hidden door|lose:lost:$h purse,a tooth,the way,the game,$h left glove,a button|hide:hid:the presents,the key,$h diary,the chocolate,a letter|seek:sought:shelter,a quiet place,help,the right road|catch:caught:a big fish,the ball,a cold,the last bus,a mouse|throw:threw:a stone,the ball,a snowball,the old bread away|hit:hit:the ball,a tree,$h thumb,the nail|kick:kicked:the ball,a stone,the door|shoot:shot:an arrow,a goal,a photo
buy:bought:a blue vase,some stamps,a kilo of plums,two tickets,a new broom,a parrot,a secondhand bicycle|sell:sold:the old boat,$h car,lemonade,a painting,three goats|pay:paid:the bill,the driver,ten euros,a small fee|spend:spent:all the money,ten euros,the whole afternoon there|steal:stole:a bicycle,a necklace,two apples,the plans|borrow:borrowed:a ladder,an umbrella,a pen,twenty euros|lend:lent:a hammer to the neighbor,$h bike to a friend|give:gave:a bone to the dog,a flower to the teacher,$h brother the tickets|send:sent:a parcel,a card,an invitation,flowers|bring:brought:a cake,the tools,good news,a bag of coal,an umbrella|get:got:a medal,a letter,a new job,a blue bicycle|win:won:the first prize,a goldfish,the race,a radio|choose:chose:the red one,a window seat,the smallest kitten,the fish soup
build:built:a sandcastle,a birdhouse,a raft,a snowman,a stone wall|make:made:a kite,a sandwich,a mistake,pancakes,a necklace of shells|mend:mended:the net,the fence,a sock,the toy train|repair:repaired:the clock,the roof,a bicycle,the radio|dig:dug:a hole,a ditch,a pond|plant:planted:an oak,tulips,beans,a row of onions|pick:picked:cherries,some flowers,three pears,mushrooms|water:watered:the tomatoes,the roses,the lawn|feed:fed:the ducks,the hens,the baby,two stray cats|milk:milked:the goat,the cows|ride:rode:a donkey,a gray pony,$h bike,a camel|drive:drove:a truck,the school bus,a tractor|fly:flew:a kite,a small plane|steer:steered:the boat,the ship
wash:washed:the dishes,the car,$h hands,a sweater,the windows|sweep:swept:the floor,the yard,the stairs|clean:cleaned:the cage,$h room,the stove,$h teeth|dry:dried:the plates,$h hair,the herbs|iron:ironed:a shirt,the tablecloth|fold:folded:the towels,a paper boat,the letter|hang up:hung up:the coat,the washing,a picture,the phone|fill:filled:the kettle,a bucket,the bathtub,two jars|empty:emptied:the bin,the bucket,$h pockets|open:opened:the window,a tin,the gate,an umbrella,a parcel,the wrong door|close:closed:the door,the shutters,the book,$h eyes|lock:locked:the gate,the shop,the safe|knock over:knocked over:a glass,the lamp,the chair
bake:baked:bread,a plum cake,biscuits,an apple pie|cook:cooked:rice,a pot of beans,dinner,lentil soup|fry:fried:two eggs,a fish,some onions|boil:boiled:water,three eggs,potatoes|peel:peeled:an orange,the potatoes,a carrot|stir:stirred:the soup,the paint,the porridge|burn:burned:the toast,the letters,$h hand,the cake|freeze:froze:the berries,the leftover soup|taste:tasted:the soup,the wine,a fig|smell:smelled:smoke,a rose,fresh bread|carry:carried:a ladder,the shopping,the baby,two suitcases,a basket of eggs|lift:lifted:the lid,a heavy stone,the child|pull:pulled:the rope,a cart,the sledge|push:pushed:the car,a pram,the button|drag:dragged:a sack,the boat out of the water
hold:held:the rope,a candle,$h breath,the baby|drop:dropped:a plate,the keys,an egg,the tray|leave:left:$h umbrella there,a note,the door open|forget:forgot:the milk,$h homework,the tickets,the password|remember:remembered:the number,an old song,the name of the street|teach:taught:geography,the parrot a word,two classes|learn:learned:a poem,Spanish,the first song by heart|study:studied:the map,law,the stars|count:counted:the sheep,the money,the steps|measure:measured:the door,the shelf,the snow|weigh:weighed:the parcel,the baby,the apples|copy:copied:the recipe,the key,a drawing|print:printed:the tickets,a photo,ten pages|show:showed:$h passport,the way,a photo of the dog|answer:answered:the phone,all the questions,the letter
visit:visited:an old aunt,the museum,a farm,the lighthouse|meet:met:a fisherman,the mayor,two tourists,an old teacher|call:called:a doctor,the police,$h mother,a taxi|wake:woke:the children,$h brother,the guard|help:helped:an old man,the nurse,a lost child|follow:followed:the river,the tracks,the guide|chase:chased:a rabbit,the hens,the thief|climb:climbed:a tree,the tower,a steep hill,the wall|cross:crossed:the river,the street,the bridge|reach:reached:the cabin,the top,the village|pass:passed:the test,the church,the salt|board:boarded:the ferry,the plane|miss:missed:the train,the first act,$h stop|leave out:left out:the last page,the sugar,one word|wrap:wrapped:the present,a sandwich,the glass|tie:tied:the boat to a post,$h shoes,a knot|load:loaded:the van,the camera,a donkey|raise:raised:the flag,$h hand,the anchor"""
DEEDS: list[tuple[str, str, list[str]]] = [
    (base, past, things.split(","))
    for base, past, things in (row.split(":") for row in _ROWS.replace("\n", "|").split("|"))
]
_WHEN = ["", "", "", "It was already dark when $n reached the $place. ", "On $day $n was at the $place. ", "It was a $weather day. ", "$n lives by the $place. ", "After school $n went to the $place. ", "Early in the morning $n woke up. ", "When $n came home, nobody was there. ", "$n was alone in the $room. ", "$n had a day off. ", "In the evening $n was in the $room. "]  # fmt: skip


def deeds(rng: Random) -> tuple[str, list[tuple[str, str]]]:
    """A text of such deeds, and (question, answer) of it."""
    woman = rng.random() < 0.5
    name = rng.choice(GIRLS if woman else BOYS)
    other = rng.choice([n for n in rng.sample(BOYS, 3) if n != name])
    he, his = ("she", "her") if woman else ("he", "his")
    drawn = rng.sample(DEEDS, rng.choice((2, 3, 3, 4)))
    done = [(base, past, rng.choice(things).replace("$h", his)) for base, past, things in drawn]
    scene = Scene(rng)
    scene["n"] = name
    pairs: list[tuple[str, str]] = []
    draw = rng.random()
    if draw < 0.6:
        opener = write(rng, rng.choice(_WHEN), scene)
        opener = opener + " " if opener else ""
        who = he.capitalize() if name in opener and rng.random() < 0.7 else name
        said = [f"{past} {thing}" for _, past, thing in done]
        text = f"{opener}{who} {', '.join(said[:-1])} and {said[-1]}."
        if rng.random() < 0.3:
            then = rng.choice(["Then", "After that", "Later", "At last", "In the end"])
            text = f"{opener}{who} {', '.join(said[:-2]) + ' and ' + said[-2] if len(said) > 2 else said[0]}. {then} {he} {said[-1]}."
        for base, past, thing in done:
            pairs += _about(rng, name, base, past, thing)
            if rng.random() < 0.2:
                pairs.append((f"Did {name} {base} {thing}?", f"Yes, {he} did."))
        if rng.random() < 0.3:
            pairs.append((rng.choice([f"What did {name} do first?", f"What was the first thing {name} did?"]), f"{name} {said[0]}."))  # fmt: skip
            pairs.append((rng.choice([f"What did {name} do last?", f"What was the last thing {name} did?"]), f"{name} {said[-1]}."))  # fmt: skip
        if scene.get("place", "\x01") in opener and "lives" not in opener:
            pairs.append((f"Where was {name}?", f"At the {scene['place']}."))
        return text, pairs
    first, second = done[0], done[1]
    second = (second[0], second[1], rng.choice(drawn[1][2]).replace("$h", "his"))
    link = rng.choice([" and ", ", and ", ", but ", " while ", "; ", ". "])
    text = f"{name} {first[1]} {first[2]}{link}{other} {second[1]} {second[2]}."
    if draw < 0.8:
        for who, (base, past, thing) in ((name, first), (other, second)):
            pairs += _about(rng, who, base, past, thing)
            pairs.append((f"Who {past} {thing}?", f"{who}."))
        if rng.random() < 0.3:
            pairs.append((f"Did {other} {first[0]} {first[2]}?", f"No, {name} did."))
        return text, pairs
    base, past, thing = first
    text = rng.choice([
        f"{name} wanted to {base} {thing}, but in the end {he} only {second[1]} {done[1][2]}.", f"Instead of the usual, {name} {second[1]} {done[1][2]} that day. Nobody {past} {thing}.", f"{name} {second[1]} {done[1][2]}, but forgot to {base} {thing}.", f"{name} did not {base} {thing}. {he.capitalize()} {second[1]} {done[1][2]}.",
    ])  # fmt: skip
    pairs = _about(rng, name, second[0], second[1], done[1][2])
    if "wanted" in text:
        pairs.append((f"What did {name} want to {base}?", f"{_up(thing)}."))
        pairs.append((f"Did {name} {base} {thing}?", f"No, {he} only wanted to."))
    elif "did not" in text:
        pairs.append((f"Did {name} {base} {thing}?", f"No, {he} did not."))
        pairs.append((f"What did {name} not {base}?", f"{_up(thing)}."))
    elif "forgot" in text:
        pairs.append((f"What did {name} forget to {base}?", f"{_up(thing)}."))
    return text, pairs


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def _about(rng: Random, name: str, base: str, past: str, thing: str) -> list[tuple[str, str]]:
    """What someone did to what, asked in one or two ways."""
    answer = f"{_up(thing)}." if rng.random() < 0.75 else f"{name} {past} {thing}."
    asks = [f"What did {name} {base}?", f"What did {name} {base}?", f"What was it that {name} {past}?", f"Which thing did {name} {base}?", f"Can you tell me what {name} {past}?", f"Tell me what {name} {past}.", f"{name} {past} what?"]  # fmt: skip
    pairs = [(rng.choice(asks), answer)]
    if rng.random() < 0.5:
        pairs.append((rng.choice([f"Who {past} {thing}?", f"Who was it that {past} {thing}?", f"Which person {past} {thing}?"]), f"{name}."))  # fmt: skip
    return pairs
