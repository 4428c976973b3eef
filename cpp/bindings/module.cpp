#include <pybind11/pybind11.h>

#include "bindings/bind.h"

PYBIND11_MODULE(_core, m) {
    m.doc() = "Akunu's compiled engine core; see _core.pyi.";
    m.attr("__version__") = AKUNU_VERSION;
    akunu::bind_exit(m);
    akunu::bind_errors(m);
    akunu::bind_formats(m);
    akunu::bind_images(m);
    akunu::bind_engine(m);
    akunu::bind_devices(m);
    akunu::bind_lookup(m);
    akunu::bind_encoder(m);
    akunu::bind_speech(m);
    akunu::bind_chips(m);
    akunu::bind_lab(m);
    akunu::bind_audio(m);
    akunu::bind_tokenizer(m);
}
