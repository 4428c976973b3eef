"""Images: from a picture to rows of a model's input.

A picture goes through three hands. `preprocess` makes patches of it, as the model's own processor would; the
tower, a model of its own on the device, makes a row of each few patches, which is as wide as an embedding;
and the engine writes these rows where it would have looked up tokens.

The parts and what they hand on:

`akunu.api.vision.towers`
    `find_tower(files, path)` gives the `TowerFiles` of a model's opened files, or None where it sees nothing.
    The tower's tensors are in the same file or folder, or in an `mmproj` file beside a GGUF file.
    `TowerFiles.spec` is a `TowerSpec`: its `family` ("qwen3_vl", "gemma3", ...), `patch_size`, `merge_size`,
    `temporal_patch_size` (1: a picture is one frame), `image_size`, and `processor`, the settings of the
    images' processor by the names of `preprocessor_config.json` (`image_mean`, `image_std`, `size`, ...),
    whatever file they are from. `with_images(spec, tower)` is the model of text whose sequences may have rows
    of the tower.

`akunu.chat.pictures.preprocess`
    Makes `Patches` of each image: `pixels`, float32 [patches, values], in merge order (patches that become
    one row stand together, row-major in it), values of a patch in the order of the weight of the tower's
    first layer ([channel, time, y, x]); `grid`, the (t, h, w) in patches; `tokens`, the rows that the tower
    makes of them; and `key`, a hash of all of it.

`akunu.api.vision.tower`
    `Tower(files, ...)` runs a tower. `encode(patches)` gives an `Encoded`: its `rows`, a
    `_core.EncodedRows` of [tokens, width], the `grid` in rows (h, w), and the `key`. It keeps what it made
    lately, up to so many bytes. `width` is a multiple of the model's `dim` where deeper layers have rows of
    their own (deepstack).

`akunu.api.vision.inputs`
    `place(n, parts, spec)` gives the `Inputs` of a prompt of n tokens, of which some have the places of rows:
    each of the `parts` is a `Placed(start, image, first, count)`, rows of an `Encoded` in order. A
    `scheduling.Sequence` has them as `inputs`, `Generation` takes them, and `Engine.begin` gets `contents`
    (what the pages' keys have in the place of tokens) and `Inputs.arguments`: `inputs` (the rows), and
    `positions`, uint32 [n, 3], where the model's rotary positions are not the indices of tokens.
"""
