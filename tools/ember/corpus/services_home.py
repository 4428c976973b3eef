# ruff: noqa: E501, SIM905 - lines of text and word lists read better whole
"""More services (see ``services``) whose choices are said by the verb ("close" for ``closed``), and whose values are said in half a sentence."""

from __future__ import annotations


from .actions import Action
from .services import Slot

HOME_SERVICES: dict[str, Action] = {
    "blinds4": Action("set_blinds move_blinds blinds shutters_control set_shutters", "Open or close the blinds|Move the blinds", "blindpos:position/state/to/blinds", ["!$blindpos the {blinds|shutters}", "{the sun is blinding me|it's too bright|I can't see the screen|I want to sleep|I just woke up|guests are coming|we are back|I'm leaving}{.|!|,} {please |}$blindpos the {blinds|shutters}", "the {blinds|shutters}: $blindpos them", "would you $blindpos the {blinds|shutters}?"], "Done."),
    "curtain4": Action("set_curtains curtain_control curtains move_curtain", "Open or close the curtains of a room", "room:room/where/place blindpos:position/state/to", ["!$blindpos the curtains in the $room", "$blindpos the $room curtains{, please|}", "{it is late|good morning|it's noon}{.|,} {please |}$blindpos the curtains in the $room"], "Done."),
    "gate4": Action("set_gate gate_control move_gate garage_gate", "Open or close a gate", "gatename:gate/which/name blindpos:position/state/action", ["!$blindpos the $gatename", "{here comes the postman|I'm in the car|we are in front of the house|the dog must not get out}{.|,} {please |}$blindpos the $gatename"], "Done."),
    "bolt4": Action("set_lock door_lock lock_control bolt", "Lock or unlock a door", "doorname:door/which/where boltstate:state/lock/to/action", ["!$boltstate the $doorname door", "{I'm going to bed|I forgot my key|we are home|somebody is coming|I am not sure about the door}{.|,} {please |}$boltstate the $doorname door", "the $doorname door, $boltstate it{, please|}"], "Done."),
    "oven4": Action("set_oven oven_program start_oven oven_control", "Set the oven to a mode, a temperature and a time", "ovenverb:mode/program/function degrees:temperature/degrees/heat minutes?:minutes/time/duration", ["$ovenverb at $degrees degrees[ for $minutes minutes]{, thanks|, please|}", "!$ovenverb {it|the bread|the fish|the vegetables|the cake|this} at $degrees degrees[ for $minutes minutes]", "oven: $ovenverb, $degrees degrees[, $minutes minutes]", "I want to $ovenverb {something|potatoes|a cake|a chicken} at $degrees degrees[, $minutes minutes]", "$degrees degrees[ and $minutes minutes], $ovenverb"], "Done."),
    "player4": Action("media_control player control_player music_control", "Control the music player", "playact:action/command/do", ["!$playact the {music|song|film|video|playlist}", "{my mother is calling|the phone rings|I have to listen|the baby sleeps|I'm back|the door bell}{.|,} {please |}$playact the {music|song|film}", "$playact{, please| please| it|}"], "Done."),
    "louder4": Action("change_volume volume_step volume_control", "Make the sound louder or quieter", "louddir:direction/change/to/how", ["{make it|turn it|a bit|I want it|it should be} $louddir{, please|}", "{can't hear a thing|my ears hurt|the baby is asleep|the neighbors complain}, $louddir please", "$louddir{!|, please}"], "Done."),
    "warmer4": Action("adjust_heating change_heating heating_step temperature_step", "Make a room warmer or colder", "room:room/where/zone warmdir:direction/change/to", ["!make it $warmdir in the $room", "it should be $warmdir in the $room", "{I'm freezing|I am sweating|not nice here}, the $room {should|must} be $warmdir", "$warmdir in the $room, please"], "Done."),
    "resize4": Action("resize_picture resize scale_image image_size", "Change the size of a picture", "file:file/image/picture/name pixels:width/w/new_width pixels2:height/h/new_height", ["!make $file $pixels wide and $pixels2 high", "!{resize|scale|shrink} $file to $pixels by $pixels2", "$file should be $pixels wide and $pixels2 high", "I need $file in $pixels x $pixels2", "$file: width $pixels, height $pixels2", "!set {the width|width} of $file to $pixels and the height to $pixels2"], "Done."),
    "pizza4": Action("order_pizza pizza_order get_pizza pizza", "Order a pizza", "pizzakind:kind/pizza/type/flavor pizzasize:size/how_big few?:quantity/count/number", ["!order[ $few] $pizzasize pizzas of the kind $pizzakind", "!order[ $few] $pizzasize $pizzakind{, please|}", "[$few ]$pizzasize {pizza|pizzas} $pizzakind{, please|}", "I {want|would like|'ll take} a $pizzasize pizza $pizzakind[, $few times]", "{we are hungry|guests are here|it's Friday}: pizza $pizzakind, $pizzasize[, $few of them]", "$pizzakind, $pizzasize[, $few of them]"], "Done."),
    "specialist4": Action("find_doctor find_specialist doctor_search clinic_search", "Find doctors of a speciality in a city", "docspec:speciality/kind/field/type city:city/town/where", ["!find {me |}a $docspec in $city", "{my eyes hurt|I have a rash|my heart beats too fast|my child is ill|my ears ring|I feel dizzy|it hurts}. {I need|find me|is there|where is} a $docspec in $city", "$docspec in $city{, please|}", "I {need|am looking for} a $docspec {in|near} $city", "we are in $city and need a $docspec"], "Done."),
    "status4": Action("set_status status_update presence my_status", "Set the status of the user", "mystatus:status/state/presence", ["I'm $mystatus{ now| for a while| until noon|}", "!set my status to $mystatus", "!{show|mark} me as $mystatus", "{tell everyone|say that} I am $mystatus", "status: $mystatus"], "Done."),
    "robot4": Action("move_robot robot_move drive_robot steer", "Move the robot", "robotdir:direction/where/way few:steps/distance/count", ["!{go|move|drive} $few steps $robotdir", "$few steps $robotdir", "$robotdir, $few steps{, please|}", "the robot {should|must} go $robotdir, $few steps"], "Done."),
    "ticket4": Action("buy_bus_ticket bus_ticket city_ticket transit_ticket", "Buy bus tickets", "few:adults/grown_ups/adult_count count?:children/kids/child_count", ["!buy tickets for $few adults[ and $count children]", "we are $few adults[ and $count children]{, tickets please|, we want to ride|}", "tickets: $few adults[, $count children]", "bus tickets for $few grown-ups[ and $count kids]{, please|}"], "Done."),
    "translate4": Action("translate translate_text translator", "Translate a text, formally or not", "phrase:text/words/what language:language/to/target tone?:tone/style/register", ["!{translate|put} \"$phrase\" {into|to} $language[, $tone]", "how do {I|you} say \"$phrase\" in $language[, $tone]?", "\"$phrase\" in $language[, $tone]{, please|}", "I need $language for \"$phrase\"[, $tone]"], "Done."),
    "move4": Action("move_appointment reschedule change_date postpone", "Move an appointment to another day", "happening:title/event/appointment/what day:day/new_day/to/date", ["!move {my |the |}$happening to $day", "!put {the |my |}$happening off {to|until} $day", "{my |}$happening should be on $day instead", "I can't make {my |the |}$happening, can it be on $day?", "$happening, but on $day"], "Done."),
    "invoice4": Action("create_invoice write_invoice new_invoice bill_customer", "Write an invoice for a customer", "person:customer/name/to/client euros:amount/sum/total", ["!{write|make|send} $person an invoice {over|for|of} $euros{ euros|}", "$person {owes us|has to pay} $euros{ euros|}, write an invoice", "invoice for $person{:|,} $euros{ euros|}", "!bill $person $euros{ euros|}"], "Done."),
    "vacuum4": Action("start_vacuum vacuum_robot clean_room send_vacuum", "Send the vacuum robot into a room", "room:room/where/area cleanmode?:mode/power/strength", ["!vacuum the $room[, $cleanmode]", "the $room is {dirty|full of crumbs|dusty}, {please clean it|vacuum it}[, $cleanmode]", "!send the {robot|vacuum} into the $room[, $cleanmode]", "{crumbs|dust|dog hair} all over the $room[, $cleanmode]"], "Done."),
    "sprinkle4": Action("water_zone water_garden irrigation start_sprinkler", "Water a part of the garden", "gardenzone:zone/part/where minutes:minutes/duration/time", ["!water the $gardenzone for $minutes minutes", "the $gardenzone {is|are} dry, {water it|give it water} for $minutes minutes", "$minutes minutes of water for the $gardenzone", "$gardenzone, $minutes minutes"], "Done."),
    "vote4": Action("cast_vote vote poll_vote answer_poll", "Vote in a poll", "voteopt:vote/choice/answer/option", ["I vote $voteopt", "my vote is $voteopt", "!vote $voteopt for me", "put me down {as|for} $voteopt"], "Done."),
    "shift4": Action("time_clock clock shift punch_clock", "Record the beginning or the end of a shift", "shiftact:action/event/type/what", ["I $shiftact work now", "!{log|note} that I $shiftact work", "I $shiftact my shift", "time clock: I $shiftact"], "Done."),
    "fridge4": Action("set_appliance appliance_mode device_mode", "Set an appliance to a mode", "appliance:appliance/device/name/what appmode:mode/setting/program", ["!set the $appliance to $appmode", "!put the $appliance {in|on} $appmode{ mode|}", "the $appliance should be on $appmode", "$appliance: $appmode"], "Done."),
    "level4": Action("report_level fill_level log_level tank_level", "Note how full a tank is", "tankname:tank/container/name percent:percent/level/fill", ["the $tankname is {at|down to} $percent percent", "the $tankname: $percent percent full", "!{log|note} $percent percent for the $tankname", "$percent percent left in the $tankname"], "Done."),
    "cardlimit4": Action("set_limit card_limit spending_limit change_limit", "Set the limit of a card", "digits:card/last_digits/card_number euros:limit/amount/max", ["!set the limit of card $digits to $euros{ euros|}", "card $digits {should|may} not spend more than $euros{ euros|}", "limit $euros{ euros|} for card $digits", "at most $euros{ euros|} on card $digits, please"], "Done."),
}  # fmt: skip
HOME_CHOICES: dict[str, list[str]] = {
    "blindpos": ["open closed=close", "open closed=close", "closed=shut open=open", "up=raise down=lower", "opened=open closed=close", "OPEN=open CLOSED=close"],
    "boltstate": ["locked=lock unlocked=unlock", "locked=lock open=unlock", "lock unlock", "closed=lock open=unlock"],
    "ovenverb": ["bake grill toast defrost", "bake roast grill", "grill bake warm", "roast bake fry", "bake broil"],
    "playact": ["play pause stop", "pause=hold resume=continue stop", "paused=pause stopped=stop playing=play", "stop restart=begin_again", "pause skip mute"],
    "louddir": ["up=louder down=quieter", "increase=louder decrease=quieter", "louder quieter", "up=louder down=softer"],
    "warmdir": ["up=warmer down=colder", "warmer colder", "increase=warmer decrease=cooler", "heat=warmer cool=cooler"],
    "pizzasize": ["small medium large", "small large", "small=little large=big", "normal family"], "mystatus": ["available=free busy away", "online offline busy", "here away", "busy free vacation=on_holiday", "available=back away=out_for_lunch"],
    "robotdir": ["forward back left right", "forward backward=backwards", "left right", "up down left right"], "tone": ["formal informal", "formal=politely casual=casually", "polite casual"], "cleanmode": ["quiet normal strong", "eco turbo", "quiet=quietly strong=with_full_power", "dry wet"],
    "voteopt": ["yes no abstain", "for against", "yes=in_favor no=against", "agree disagree"], "shiftact": ["in=start out=finish", "start=begin end=finish", "begin=start end=stop", "clock_in=start clock_out=end"], "appmode": ["eco normal", "holiday normal super", "quick eco", "cotton wool delicate", "auto off"],
}  # fmt: skip
# choices that are always said by the verb
HOME_SAID = frozenset("blindpos boltstate ovenverb playact louddir warmdir shiftact".split())
# services of which one could do the other's work
HOME_ALIKE: list[set[str]] = [
    {"blinds4", "curtain4", "gate4", "bolt4"}, {"oven4", "oven", "fridge4"}, {"player4", "louder4", "music", "music3", "volume", "song2"}, {"warmer4", "heating"}, {"ticket4", "train", "train_ticket"}, {"translate4", "translate"}, {"move4", "event", "event3", "meeting"}, {"vacuum4", "fridge4"}, {"pizza4", "order_food"}, {"shift4", "status4"}, {"level4", "measure2"}, {"vote4", "poll"},
]  # fmt: skip
_SPECS = "ophthalmologist dermatologist cardiologist dentist pediatrician neurologist orthopedist gynecologist psychiatrist surgeon urologist radiologist allergist oncologist rheumatologist physiotherapist optician psychologist vet midwife".split()
_PIZZAS = "Margherita|Funghi|Salami|Hawaii|Quattro Stagioni|Tonno|Diavola|Napoli|Capricciosa|Vegetariana|Prosciutto|Marinara|Calzone|Four Cheeses|Pepperoni|Spinach|Rucola|Bianca".split(
    "|"
)


def _of(words: str, mark: str = "|") -> Slot:
    pool = words.split(mark)
    return lambda rng, drawn: rng.choice(pool)




HOME_SLOTS: dict[str, Slot] = {
    "docspec": lambda r, d: r.choice(_SPECS), "pizzakind": lambda r, d: r.choice(_PIZZAS), "gatename": _of("gate|garage|garden gate|main gate|driveway gate|barn door|garage door"), "doorname": _of("front|back|garage|side|cellar|kitchen|main|patio"), "gardenzone": _of("lawn|roses|greenhouse|vegetable bed|hedge|front garden|flower beds|tomatoes|orchard|balcony"), "appliance": _of("fridge|freezer|washing machine|dishwasher|dryer|boiler|air conditioner|heat pump|fan|coffee machine"), "tankname": _of("oil tank|water tank|rain barrel|gas bottle|printer|aquarium|salt container|pool|milk tank|silo"),
}  # fmt: skip
