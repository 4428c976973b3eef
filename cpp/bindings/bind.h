// What each binding file adds to the module `akunu._core`.
#pragma once

#include <pybind11/pybind11.h>

namespace akunu {

void bind_exit(pybind11::module_& module);
void bind_errors(pybind11::module_& module);
void bind_formats(pybind11::module_& module);
void bind_engine(pybind11::module_& module);
void bind_devices(pybind11::module_& module);
void bind_lookup(pybind11::module_& module);
void bind_encoder(pybind11::module_& module);
void bind_images(pybind11::module_& module);
void bind_speech(pybind11::module_& module);
void bind_chips(pybind11::module_& module);
void bind_lab(pybind11::module_& module);
void bind_audio(pybind11::module_& module);
void bind_tokenizer(pybind11::module_& module);

}  // namespace akunu
