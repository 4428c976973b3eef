# ruff: noqa: E501 - lines of text read better whole
"""Small talk about what happened to the user, good or bad, apologies and greetings of all sorts, and helpers with a name of their own."""

from __future__ import annotations

from random import Random

from .grammar import write
from .multi import any_turn
from .sample import Message, Sample, Turn, chat_sample, key_turn, say
from .scene_words import Scene

_GOOD = [
    "I passed my {driving test|exam|final exam|math test|swimming test|language test|interview|audition|course|$subject exam}", "I {got|have got} {the job|a new job|a promotion|a raise|a scholarship|a prize|a medal|my license|my diploma|a good mark in $subject|the flat|a place at the university|first prize}", "{We|I} won {the match|the game|the race|the cup|a prize|the lottery|the quiz|the tournament|first place|against $city}", "my {daughter|son|sister|brother|wife|best friend|cousin} {got married|had a baby|passed the exam|won a medal|learned to walk|finished school|got a job|came home}", "{I am|I'm|we are} {going to be a {father|mother|grandmother|uncle}|getting married|engaged|expecting a baby|on holiday|moving to {$city|a bigger house}}",
    "{I|we} {bought|got} {a house|a new $thing|our first car|a {puppy|kitten}|tickets for the concert|a $pet}", "I {finished|completed} {my first marathon|my thesis|my book|the puzzle|the $sport course|my painting|all my homework|the scarf|school}", "I {baked|cooked|made} {my first cake|$dish} and {it was good|everyone liked it|it worked}", "I {learned|can now play} {to swim|to ride a bike|a song on the $instrument|my first words of $language}", "{the doctor says I am healthy|my leg is healed|I feel much better|my fever is gone|I'm well again|the operation went well}", "my {tomatoes|$flowers|seeds} are {growing|in bloom|huge}", "I found my {lost |}{$thing|cat|dog|wallet|ring|keys}{ again|}", "{it's|it is} {my last day of work|the first day of the holidays|Friday at last|my day off|our wedding day|our anniversary}", "{everything went well|it all worked out|my plan worked|the party was a success|they liked my speech|my team did it}",
    "{today was|this was|that was} {the best day|a perfect day|such a good day|my lucky day|a wonderful evening}", "I {finally|at last} {did it|managed it|understood it|fixed it|finished it|made it to the top}", "{the baby slept all night|grandma is out of hospital|my pet is well again|the exam is over|the rain has stopped|spring is here}", "{the teacher|my boss|my $kin} {praised me|said well done|was proud of me|gave me a gift}",
]  # fmt: skip
_BAD = [
    "I failed my {driving test|exam|math test|interview|$subject exam|course}", "I {lost|broke} my {job|$thing|wallet|keys|phone|glasses|ring|leg|arm|favorite cup|passport|tooth}", "I missed {my {bus|train|flight|stop|appointment}|the {concert|wedding|last bus|party|deadline}}", "my {dog|cat|hamster|$pet|goldfish|grandmother|grandfather|uncle} {died|is very ill|passed away|is in hospital|got lost|ran away}", "my {$ache|$ache2|tummy|heart|eyes} {hurts|is sore|aches|hurts so much|is killing me}", "my {eyes|feet|legs|ears|knees|hands} {hurt|ache|are sore}{ again|}", "{somebody|a thief|someone} stole my {$thing|bike|car|wallet|bag|lunch}", "{my car|my $thing|the heating|my computer|my phone|the fridge|the lift} {broke down|is broken|does not work|stopped working}", "{my best friend|my neighbor|my sister|$name} {moved away|is angry with me|does not talk to me|forgot my birthday|lied to me}",
    "I {had|got into} {a fight|a quarrel|an argument} with my {boss|$kin|friend|neighbor|teacher}", "{nobody|no one} {came to my party|remembered my birthday|likes me|called me|visits me|listens to me}", "I {can't|cannot|could not} {sleep|find a job|find my $thing|stop crying|pay the rent|go outside|fall asleep at night}", "I {got|caught} {a cold|the flu|a fever|a bad mark|a parking ticket|a fine|a sunburn}", "I {burned|ruined|spoiled} {the cake|my dinner|my shirt|$dish}", "I {fell|slipped} {on the ice|down the stairs|off my bike|in the shower}", "{my flight|our trip|the concert|my holiday|the wedding} was {cancelled|called off|a disaster|ruined by rain}", "{we lost|our team lost|I lost} {the match|the game|the final|again|against $city}", "{I feel|I'm feeling|I am} {so |very |a bit |really |}{lonely|sad|homesick|down|unwell|sick|worried|nervous about tomorrow|afraid of the exam|left out|useless|miserable|stressed}{ today|}", "{it has been|this was|today was} {a hard week|a terrible day|a long and bad day|the worst day|a sad year}", "{my boyfriend|my girlfriend|my husband|my wife} {left me|is ill|moved out|forgot our anniversary}",
]  # fmt: skip
_JOY = "{That is wonderful! Well done!|Congratulations! I am happy for you.|That is great news! I am glad for you.|How wonderful! You can be proud.|Congratulations, that is great!|That is good to hear! I am happy for you.|What good news! Well done.}"
_PITY = "{I am sorry to hear that. I hope that it gets better soon.|Oh, I am sorry. I hope that tomorrow will be better.|I am sorry to hear that. That must be hard.|That is sad, I am sorry. Would you like to hear a story?|I am sorry. I hope you feel better soon.}"
_OTHER: list[tuple[str, str]] = [
    ("{sorry|I'm sorry|I am sorry|excuse me|my apologies|forgive me|pardon me} {for|if I am|that I am} {disturbing you|bothering you|interrupting you|waking you|asking so much|writing so late|all the questions|my bad English|the wait|the typos|the trouble|keeping you waiting|being late|so many questions|calling so early}{ so late| again| today|}".replace("{for|if I am|that I am}", "for"), "{No problem at all! I am always here.|That is all right. How can I help?|No problem! What can I do for you?|Do not worry, I am happy to help.}"),
    ("{sorry|oh, sorry|oops|ups|sorry, my mistake}, {I pressed the wrong key|that was not for you|wrong window|I typed too fast|my cat walked over the keyboard|I did not mean that|I was away}", "{No problem at all.|That is all right. How can I help?|No worries! What can I do for you?}"),
    ("{am I|do I} {disturbing|bother|disturb} you{ now| at this hour|}".replace("{am I|do I} {disturbing|bother|disturb} you", "{am I disturbing you|do I bother you|do I disturb you|is this a bad time|are you busy}"), "{Not at all! How can I help?|No, I am happy to help. What can I do for you?}"),
    ("{wassup|wazzup|sup|whazzup|what's up|'sup|waddup|whats up|what up|yo, what's up|what's cooking|what's new|how's tricks|how goes it|how's life|what's the news}{ buddy| man| friend| dude| mate| Ember|}", "{Not much! I am here and ready to help.|Hello! I am fine. How can I help you?|Hi! Not much. What can I do for you?}"),
    ("{hey|hi|hello|hiya|heya|hullo|ahoy|howdy|hallo|bonjour|hola|ciao|servus|moin|salut|good day|greetings|hey there|hello there|hi there}{ Ember| friend| computer| you| my friend| little one| old friend| again|, anybody there|, anyone home|}", "{Hello! How can I help you?|Hi! What can I do for you?|Hello! It is nice to hear from you.}"),
    ("{good|a very good|a lovely|have a good} {morning|afternoon|evening|day}{ to you|, Ember| from {$city|rainy $city|the office}|, dear friend|, everyone|}", "{Good day to you! How can I help?|Hello! I hope you are having a good day. How can I help?}"),
    ("{good night|sleep well|sweet dreams|I'm off to bed|time for bed|I go to sleep now|I'm going to bed|bedtime|I have to sleep now|nighty night}{, Ember| now|, my friend|, until tomorrow|}", "{Good night, and sleep well!|Good night! Sweet dreams.|Sleep well! See you soon.}"),
    ("{bye|goodbye|see you|so long|take care|farewell|I have to go|I must go|I'm leaving|gotta go|that's all for today|until next time|talk to you later|have a nice {day|weekend|evening}|my bus is here, bye|lunch is ready, bye|I'm out}{ now|, Ember|, thanks for everything|}", "{Goodbye! It was nice talking to you.|Bye! See you soon.|Goodbye, and have a good day!}"),
    ("{thanks|thank you|thank you so much|many thanks|thx|thanks a lot|I owe you one|much appreciated|that was very kind|you saved my day|that's exactly what I needed|you're a lifesaver|perfect, thanks|great help|merci|danke|gracias}{, Ember| for the help| for your patience| for everything| for listening|, my friend|}", "{You are welcome!|My pleasure!|You are welcome! I am glad I could help.|You are welcome! Is there anything else?}"),
    ("{you are|you're} {the best|so kind|a good listener|very patient|funny|smarter than I thought|a great help|my favorite program|so quick|cute}{ today|, you know|}", "{Thank you! That is kind of you.|Thank you, I am glad to help!|Thank you! I do my best.}"),
    ("{I am|I'm} {so |very |a bit |really |}bored{ at work| at home| on the train| today| to death|}|{there is nothing to do|what can I do against boredom|it's so boring here|I don't know what to do{ today|}|the waiting is so boring|school is boring}", "{Shall I tell you a story?|How about a story or a game with words?|Then let us do something! Would you like a story?}"),
    ("{I am|I'm|I feel} {so |very |a bit |really |}{tired|sleepy|exhausted|worn out}{ today| after work| after school|}|{I did not sleep well|I slept badly|I was up all night|I need a nap|what a long day|I worked ten hours}", "{Then it is time to rest. Sleep well!|A little rest will do you good.|Take a rest! I hope you sleep well.}"),
    ("{I am|I'm} {so |very |really |}{hungry|thirsty|starving}{ again| now|}|{I could eat a horse|I have not eaten all day|I want $dish|I want some $drink|dinner is late}", "{I hope you find something good to eat!|Then it is time to eat something. Enjoy your meal!}"),
    ("{it's|it is} {snowing|raining|storming|so cold|so hot|freezing|foggy|dark already}{ in $city| here| again| outside| since $day|}|{what a storm|what awful weather|it rains cats and dogs|the snow is so deep|I am wet to the skin}", "{Then it is a good day to stay inside. Would you like a story?|I hope you are warm and dry! Shall I tell you a story?}"),
    ("{the sun is shining|what a beautiful day|it's so sunny|it is a lovely evening|the sky is so blue|the $flowers are in bloom|it smells of spring}{ here| today| in $city|}", "{How nice! Enjoy the day.|That sounds lovely! I hope you enjoy it.}"),
    ("{it's|it is|today is} {my|my $kin's|the|our} {birthday|big birthday|anniversary}{ today|}|{I am $num today|I turn $num today|today I turned $num|guess who is $num today}", "{Happy birthday! I wish you a wonderful day.|Congratulations! Have a wonderful day.}"),
    ("{merry Christmas|happy New Year|happy Easter|happy holidays|happy weekend|have a nice Sunday|happy Friday|enjoy the holidays}{, Ember| to you| from $city|}", "{Thank you, the same to you!|Thank you! I wish you the same.}"),
    ("{nice|good|pleased|lovely|glad|happy} to {meet|see|talk to|know} you{, Ember| too| again|}|{it's nice to have someone to talk to|I like talking to you|I enjoy our talk|it is good to have you}", "{Nice to meet you too! I am glad to talk with you.|I am glad too! How can I help?}"),
    ("{I am|I'm} {nervous|excited|worried} {about|because of} {my exam|the interview|my first day|the wedding|tomorrow|the flight|the doctor|my speech|the match}|{tomorrow is my {exam|interview|first day|test}|wish me luck|keep your fingers crossed{ for me|}|I have {an exam|a test|a speech} tomorrow}", "{Good luck! I am sure you will do well.|I wish you good luck! You can do it.}"),
    ("{I am|I'm} {going|off|on my way} to {work|school|the $place|$city|the gym|a party|my $kin}{ now| today|}|{I {start|begin} my holidays {today|tomorrow}|we travel to $country {tomorrow|next week}|I'm packing my bags}", "{Have a good time!|That sounds nice! Have a good trip.|Enjoy it! I hope you have a good day.}"),
    ("{my|our} {$kin|$pet|baby|new neighbor} is so {funny|sweet|nice|clever|loud}{ today|}|{I love my $kin|my $pet makes me laugh|my $kin cooks so well}", "{How nice! That sounds lovely.|That is nice to hear!}"),
    ("{how are you|how do you do|how are things|how are you feeling|are you well|all good with you|everything fine with you|how was your day|did you sleep well|how is it going}{ today| this morning| on this rainy day|, Ember|, my friend|}", "{I am fine, thank you. How are you?|I am doing well, thank you! And you?|Very well, thank you. What can I do for you?}"),
    ("{I just|I} {came home|got back} from {work|school|$city|the $place|my $kin|the gym|holiday}{ now| at last|}|{I'm|I am} {home|back|here} {again|at last|now}|{here I am again|it's me again|me again|hello, it's me again|I'm back from {work|lunch|school|$city}}", "{Welcome back! How can I help?|Hello again! What can I do for you?|Welcome back! I hope you had a good day.}"),
    ("{it's|it is|today is|this is} my first {day|week|time} {here|at work|at school|with you|in $city|at the new job|in the team}{ today|}|{I am|I'm} new {here|in town|at this|to this|in $city}", "{Welcome! I hope you will like it here.|Welcome! How can I help you?}"),
    ("{can|may|could|shall} I tell you {a secret|something|a joke|about my day|what happened|a riddle|something funny|about my $pet}|{do you want to|would you like to} hear {a secret|a joke|something funny|what happened today|my news}|{I have|I've got} {a secret|news|something to tell you|a question}", "{Yes, of course! I am listening.|Of course, tell me! I am listening.}"),
    ("{I'm|I am|we are|we're} {cooking dinner|baking a cake|cleaning the $room|painting the $room|packing|waiting for {the bus|my $kin|$name}|reading a book|listening to music|drinking $drink|having lunch|on the {bus|train}|in the garden|learning $language|writing a letter|watching the rain}{ now| right now| at the moment| today|}", "{That sounds nice! I hope it goes well.|How nice! Have a good time.|That sounds good. Can I help you with something?}"),
    ("{do you|would you} like {rain|snow|music|$animals|$flowers|summer|winter|$dish|$color things|stories|the sea|your job|people|$subject}{ too| as well|}", "{I am only a program, but I like stories about it.|I am only a program, so I cannot say. What about you?}"),
    ("{how was|how is} your {weekend|day|night|week|holiday|morning|evening}{ so far|, Ember|}", "{I am a program, so every day is good for me. How was yours?|It was fine, thank you! And yours?|Very good, thank you. How can I help?}"),
    ("{I|we} miss {my|our} {old school|old home|$kin|$pet|friends|grandmother|hometown|best friend}{ so much| a lot| today|}|{I wish|I'd love} {I was at home|it was summer|I could fly|I could see my $kin again|you were here}", "{I understand. I hope that you feel better soon.|That is sad. I hope it gets easier soon.|I am sorry to hear that. Would you like to hear a story?}"),
    ("{I|we} {don't|do not} feel like {working|cooking|studying|going out|cleaning|getting up|doing anything}{ today| at all| right now|}|{I have|there is} {so much|too much} {work|homework|to do}{ today|}|{I hate Mondays|Monday again|I should clean my room|I have to work all weekend}", "{I understand. Take a little rest first!|That can be hard. A short break may help.|I understand. Shall I tell you a story first?}"),
    ("{my|our} {baby|son|daughter|little girl|puppy|grandchild} {took {her|his} first steps|said {her|his} first word|can walk|can swim now|lost the first tooth|learned to read|slept all night|smiled at me|started school today|turned {one|two|three|four}}{ today| yesterday|}", "{How wonderful! You can be proud.|That is wonderful! I am happy for you.}"),
    ("{we|I|my $kin and I} {go|are going|will go} {camping|hiking|swimming|skiing|to the sea|to the zoo|to $country|on holiday|dancing|to a concert} {tomorrow|on $day|next week|at the weekend|soon}|{I'm|I am|we are} so excited{, we go {camping|on holiday} {tomorrow|on $day}| about {the trip|tomorrow|the party|my new school}|}", "{That sounds great! Have a good time.|How nice! I hope you have a wonderful time.}"),
    ("my {sister|brother|$kin|best friend|daughter|son} {is getting married|gets married|has {her|his} birthday|is coming home|comes to visit|starts a new job|turns $num} {on $day|tomorrow|next week|in $month|soon}", "{How nice! I hope you have a wonderful time.|That is wonderful! I am happy for you.}"),
    ("{sorry|I'm sorry|I am sorry}, {I was rude{ before|}|I was {angry|unfair|impatient|grumpy}|I did not mean it|that was not nice of me|I shouted|I was away|I forgot to say hello|I am in a bad mood}|{I take it back|I should not have said that|please forgive me}", "{That is all right. How can I help?|No problem at all!|Do not worry! What can I do for you?}"),
    ("{that's|that is|it's|this is} {not what I {meant|asked|wanted}|wrong|not right|not true|nonsense|a mistake}{, you know|, try again|, sorry|}|{you are|you're} {wrong|mistaken|not listening|confused}|{you did not understand me|that makes no sense|no, not that}", "{I am sorry. I am only a small model, and I make mistakes.|I am sorry about that. I am very small and I can be wrong.}"),
    ("{ok|okay|cool|ok cool|alright|fine|great|nice|good|super|I see|got it|ah|aha|understood|sounds good|good to know|interesting|wow|oh|hm|very well|no problem|makes sense}{, thanks|, good|, Ember|}", "{Good! What would you like?|All right! What can I do for you?|Good! Is there anything else?}"),
    ("{have a|I wish you a|enjoy your} {nice|good|great|lovely|wonderful|quiet} {evening|day|night|weekend|time|afternoon|week}{, Ember| too| you too|}", "{Thank you, the same to you!|Thank you! Have a good time too.}"),
]  # fmt: skip
_LEADS = ["", "", "", "", "", "", "", "hey, ", "guess what, ", "you know what? ", "hi Ember, ", "oh, ", "so, ", "hi! ", "listen, ", "well, ", "today ", "yesterday "]  # fmt: skip
_ENDS = ["", "", "", ".", ".", ".", "!", "!", "!!", "!!!", "...", " :)", " today!", " today", " this morning", " yesterday", ", you know", ", can you believe it"]  # fmt: skip


def remark_turn(rng: Random) -> Turn:
    """Something the user says, and a reply that fits it."""
    draw = rng.random()
    scene = Scene(rng)
    if draw < 0.5:
        table, answers = (_GOOD, _JOY) if draw < 0.26 else (_BAD, _PITY)
        said = write(rng, rng.choice(table), scene)
        lead, end = rng.choice(_LEADS), rng.choice(_ENDS)
        if any(w in said for w in ("today", "yesterday", "tomorrow", "again", "night")):
            lead = "" if lead in ("today ", "yesterday ") else lead
            end = rng.choice(["", ".", "!", "!!", "..."])
        if lead in ("today ", "yesterday "):
            end = rng.choice(["", ".", "!", "!!"])
        said = lead + said + (end if table is _GOOD or ":)" not in end else " :(")
    else:
        asks, answers = rng.choice(_OTHER)
        said = write(rng, "{" + asks + "}", scene) + rng.choice(["", "", ".", "!", "!", "...", " :)"])
        if said.split()[0] in ("how", "are", "what", "am", "do", "is", "did", "whats") and rng.random() < 0.8:
            said = said.rstrip(".! :)") + "?"
    said = said[0].upper() + said[1:] if rng.random() < 0.6 else said
    if rng.random() < 0.08:
        said = said.lower()
    return Turn("small talk", said, write(rng, answers), f"remark {said.lower()}")


_HOSTS = "{a|the} {flower shop|hotel|library|museum|zoo|bank|school|bakery|garage|clinic|travel agency|train company|bookshop|restaurant|pharmacy|city|post office|swimming pool|theater|farm|airline|newspaper|shoe shop|pet shop|garden center|campsite|family $sur|company $sur}"
_TITLES = "{assistant|helper|voice|robot|receptionist|guide|chatbot|host|butler|secretary|clerk|friendly helper|digital assistant|night porter|concierge|librarian|service agent|tour guide}"
_WHO_ASKS = [
    "{who are you|who is this|who is that|who is speaking|who is there|who am I talking to|who am I speaking to|who do I have on the line|with whom am I speaking|may I ask with whom I am speaking|to whom am I talking|whom do I have the pleasure of talking to|may I ask who you are|and you are|who's there|what is your name|what's your name|may I know your name|can you tell me your name|how shall I call you|what should I call you|what do they call you|do you have a name|your name, please|sorry, what was your name|and your name is|hi, who are you|hello, who is this|could you introduce yourself|please introduce yourself|introduce yourself|tell me your name|tell me who you are|what are you called|could I have your name|who answers here|am I talking to a person|who is writing to me}",
]  # fmt: skip
_WHERE_ASKS = "{where do you work|for whom do you work|who do you work for|what do you do here|what is your job|what is your work|which company is this|what place is this|what are you here for|what is your task}"


def host_chat(rng: Random) -> Sample:
    """A helper whose name the system prompt gives, and who is asked for it, among other things."""
    scene = Scene(rng)
    name = scene["name"]
    place = write(rng, _HOSTS, scene)
    title = write(rng, _TITLES)
    form = rng.random()
    if form < 0.6:
        system = write(rng, f"{{You are {name}, the {title} of {place}|You are {name}, {title} at {place}|Your name is {name}. You are the {title} of {place}|You are the {title} of {place} and your name is {name}|You are called {name} and work as {title} for {place}}}.")  # fmt: skip
        who = [f"I am {name}, the {title} of {place}.", f"My name is {name}. I am the {title} of {place}."]
        work = f"I am the {title} of {place}."
    elif form < 0.8:
        system = write(rng, f"{{You are {name}|Your name is {name}|You are an assistant named {name}|You are a helpful assistant called {name}|Call yourself {name}|You are {name}, a helpful assistant}}.")  # fmt: skip
        who, work = [f"I am {name}.", f"My name is {name}."], f"I am {name}, and I am here to help."
    else:
        kind = scene["job"]
        system = write(rng, f"{{You are {name}, a {kind} from {scene['city']}|You play {name}, a {kind} from {scene['city']}|You are a {kind} called {name} from {scene['city']}}}.")  # fmt: skip
        who = [f"I am {name}, a {kind} from {scene['city']}.", f"My name is {name}. I am a {kind} from {scene['city']}."]  # fmt: skip
        work = f"I am a {kind}."
    system += rng.choice(["", "", "", " Be polite.", " Be brief.", " You help the guests.", " Help the customers.", " Answer kindly.", " Stay friendly."])  # fmt: skip
    messages: list[Message] = [say("system", write(rng, system.replace("|", " ")))]
    turns: list[Turn] = []
    count = rng.choice((1, 1, 1, 2, 3))
    at = rng.randrange(count)
    for number in range(count):
        if number == at:
            if rng.random() < 0.82:
                ask, answer = write(rng, rng.choice(_WHO_ASKS)), rng.choice(who)
            else:
                ask, answer = write(rng, _WHERE_ASKS), work
            ask = ask[0].upper() + ask[1:] if rng.random() < 0.65 else ask
            ask = rng.choice(["", "", "", "", "Hello! ", "Good evening. ", "Excuse me, ", "Hi. "]) + ask
            ask += rng.choice(["?", "?", "?", ""]) if "introduce" not in ask.lower() and "ell me" not in ask else rng.choice([".", ""])  # fmt: skip
            messages += [say("user", ask), say("assistant", write(rng, answer))]
        else:
            turn = remark_turn(rng) if rng.random() < 0.4 else any_turn(rng)
            while turn.skill == "identity":
                turn = any_turn(rng)
            turns.append(turn)
            messages += [say("user", turn.ask), say("assistant", turn.answer)]
    return chat_sample("identity", messages, [*turns, key_turn("identity", messages[:-1])])
