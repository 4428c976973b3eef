// The C interface over the Python package, by Python's stable interface: each function calls that of the same name in
// akunu.loading.c_abi, which gives texts, bytes and numbers.
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include "akunu.h"

#include <Python.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

struct akunu_model {
    PyObject* object;
};

namespace {

thread_local std::string last_error;

akunu_status failed(akunu_status status, std::string message) {
    last_error = std::move(message);
    return status;
}

// A reference of ours.
class Ref {
  public:
    Ref(PyObject* object = nullptr) : object_(object) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref&& other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }
    PyObject* get() const { return object_; }
    PyObject* release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    PyObject* object_;
};

std::string text_of(PyObject* object) {
    const Ref text(object ? PyObject_Str(object) : nullptr);
    Py_ssize_t size = 0;
    const char* bytes = text ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
    if (!bytes) {
        PyErr_Clear();
        return "an error without words";
    }
    return {bytes, static_cast<std::size_t>(size)};
}

// Takes the exception that is set.
std::string raised() {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    const Ref a(type), b(value), c(trace);
    return text_of(value);
}

class Gil {
  public:
    Gil() : state_(PyGILState_Ensure()) {}
    ~Gil() { PyGILState_Release(state_); }
    Gil(const Gil&) = delete;
    Gil& operator=(const Gil&) = delete;

  private:
    PyGILState_STATE state_;
};

PyObject* module = nullptr;  // akunu.loading.c_abi
std::string version;

// The folder that has the package, in which this library lies as akunu/lib/libakunu.so.
std::string packages() {
    Dl_info info{};
    if (!dladdr(reinterpret_cast<const void*>(&akunu_abi), &info) || !info.dli_fname) return {};
    std::string path = info.dli_fname;
    for (int i = 0; i < 3; ++i) {
        const auto slash = path.rfind('/');
        if (slash == std::string::npos) return {};
        path.resize(slash);
    }
    return path;
}

// Imports what the functions call. The interpreter finds its own library; the package's folder may be in no path of
// it, where that is a virtual environment's.
std::string import_module() {
    const std::string folder = packages();
    if (!folder.empty()) {
        const Ref site(PyImport_ImportModule("site"));
        const Ref added(site ? PyObject_CallMethod(site.get(), "addsitedir", "s", folder.c_str()) : nullptr);
        if (!added) return raised();
    }
    Ref found(PyImport_ImportModule("akunu.loading.c_abi"));
    const Ref named(found ? PyObject_GetAttrString(found.get(), "VERSION") : nullptr);
    if (!named) return raised();
    version = text_of(named.get());
    module = found.release();
    return {};
}

// Starts the interpreter if this process has none; empty where it runs, else what is wrong.
const std::string& started() {
    static std::once_flag once;
    static std::string problem;
    std::call_once(once, [] {
        const bool ours = !Py_IsInitialized();
        if (ours) Py_InitializeEx(0);  // signals stay the program's
        {
            const Gil gil;
            problem = import_module();
        }
        if (ours) PyEval_SaveThread();
    });
    return problem;
}

// Calls a function of the module; it returns (0, …) or (status, message).
Ref call(akunu_status& status, const char* name, const Ref& arguments) {
    const Ref function(arguments ? PyObject_GetAttrString(module, name) : nullptr);
    Ref answer(function ? PyObject_CallObject(function.get(), arguments.get()) : nullptr);
    if (!answer) {
        status = failed(AKUNU_ERROR, raised());
        return {};
    }
    const long code = PyLong_AsLong(PyTuple_GetItem(answer.get(), 0));
    status = static_cast<akunu_status>(code);
    if (status != AKUNU_OK) {
        failed(status, text_of(PyTuple_GetItem(answer.get(), 1)));
        return {};
    }
    return answer;
}

struct Callback {
    akunu_callback function;
    void* user;
};

// The Python side of a callback: takes a text, returns whether the output is to end.
PyObject* emit(PyObject* self, PyObject* text) {
    const auto* callback = static_cast<const Callback*>(PyCapsule_GetPointer(self, nullptr));
    Py_ssize_t size = 0;
    const char* bytes = callback ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
    if (!bytes) return nullptr;
    PyThreadState* state = PyEval_SaveThread();
    const int end = callback->function(bytes, static_cast<std::size_t>(size), callback->user);
    PyEval_RestoreThread(state);
    return PyBool_FromLong(end != 0);
}

PyMethodDef emit_method{"emit", emit, METH_O, nullptr};

// A struct of the caller, which may be older and shorter than ours.
template <class T>
T known(const T* given) {
    T all{};
    if (given) std::memcpy(&all, given, given->size < sizeof(T) ? given->size : sizeof(T));
    return all;
}

// A caller's struct of another version gets what it has room for.
template <class T>
void give(T* to, T from) {
    if (!to) return;
    from.size = to->size;
    std::memcpy(to, &from, to->size < sizeof(T) ? to->size : sizeof(T));
}

char* copied(const char* bytes, Py_ssize_t size) {
    auto* copy = static_cast<char*>(std::malloc(static_cast<std::size_t>(size) + 1));
    if (copy) {
        std::memcpy(copy, bytes, static_cast<std::size_t>(size));
        copy[size] = 0;
    }
    return copy;
}

// What is wrong with a caller's struct, of which the first `least` bytes have been there in every version.
template <class T>
akunu_status sized(const T* given, const char* name, std::size_t least) {
    if (!given || given->size >= least) return AKUNU_OK;
    return failed(AKUNU_BAD_ARGUMENT, std::string(name) + ".size: found " + std::to_string(given->size) +
                                          ", expected sizeof, which the program sets");
}

// Calls a function whose answer is (0, text, json, prompt, cached, generated, finish, first, speed). Its arguments are
// the model, `input`, which it takes, the options and the callback.
akunu_status output(const char* name, akunu_model* model, Ref input, const akunu_output_options* options,
                    akunu_result* result) {
    if (!input) return failed(AKUNU_BAD_ARGUMENT, raised());
    akunu_status status = sized(options, "options", offsetof(akunu_output_options, user) + sizeof(void*));
    if (status == AKUNU_OK) status = sized(result, "result", offsetof(akunu_result, prompt_tokens));
    if (status != AKUNU_OK) return status;
    const akunu_output_options asked = known(options);
    Callback callback{asked.on_text, asked.user};
    const Ref capsule(PyCapsule_New(&callback, nullptr, nullptr));
    Ref function(asked.on_text ? PyCFunction_NewEx(&emit_method, capsule.get(), nullptr) : nullptr);
    PyObject* emitted = function ? function.get() : Py_None;
    const Ref arguments(Py_BuildValue("OOzO", model->object, input.get(), asked.options ? asked.options : "", emitted));
    const Ref answer = call(status, name, arguments);
    if (!answer || !result) return status;
    const char *text = nullptr, *json = nullptr;
    Py_ssize_t text_size = 0, json_size = 0;
    unsigned zero = 0, prompt = 0, cached = 0, generated = 0, finish = 0;
    akunu_result made{};
    if (!PyArg_ParseTuple(answer.get(), "Is#s#IIIIdd", &zero, &text, &text_size, &json, &json_size, &prompt, &cached,
                          &generated, &finish, &made.seconds_to_first_token, &made.tokens_per_second)) {
        return failed(AKUNU_ERROR, raised());
    }
    made.text = copied(text, text_size);
    made.json = copied(json, json_size);
    if (!made.text || !made.json) {
        std::free(made.text);
        std::free(made.json);
        return failed(AKUNU_NO_MEMORY, "out of memory");
    }
    made.text_size = static_cast<std::size_t>(text_size);
    made.json_size = static_cast<std::size_t>(json_size);
    made.prompt_tokens = prompt;
    made.cached_tokens = cached;
    made.generated_tokens = generated;
    made.finish = static_cast<akunu_finish>(finish);
    give(result, made);
    return AKUNU_OK;
}

Ref bytes_of(const void* memory, std::size_t size) {
    return PyBytes_FromStringAndSize(static_cast<const char*>(memory), static_cast<Py_ssize_t>(size));
}

// The bytes that an answer is; false, and the error is kept, where it is something else.
bool has_bytes(const Ref& answer, char*& bytes, Py_ssize_t& size) {
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(answer.get(), 1), &bytes, &size) == 0) return true;
    failed(AKUNU_ERROR, raised());
    return false;
}

// What is wrong with a call before Python is asked.
akunu_status usable(bool arguments) {
    if (!arguments) return failed(AKUNU_BAD_ARGUMENT, "an argument that is needed is NULL");
    const std::string& problem = started();
    return problem.empty() ? AKUNU_OK : failed(AKUNU_NO_PYTHON, problem);
}

}  // namespace

uint32_t akunu_abi(void) { return AKUNU_ABI; }

const char* akunu_version(void) { return started().empty() ? version.c_str() : ""; }

const char* akunu_error(void) { return last_error.c_str(); }

akunu_status akunu_load(const char* name, const akunu_load_options* options, akunu_model** out) {
    akunu_status status = usable(name && out);
    if (status != AKUNU_OK) return status;
    *out = nullptr;
    status = sized(options, "options", offsetof(akunu_load_options, options) + sizeof(char*));
    if (status != AKUNU_OK) return status;
    const akunu_load_options asked = known(options);
    const Gil gil;
    const Ref arguments(Py_BuildValue("ssIIs", name, asked.device ? asked.device : "auto", asked.context, asked.threads,
                                      asked.options ? asked.options : ""));
    const Ref answer = call(status, "load", arguments);
    if (!answer) return status;
    PyObject* object = PyTuple_GetItem(answer.get(), 1);
    Py_INCREF(object);
    *out = new akunu_model{object};
    return AKUNU_OK;
}

void akunu_close(akunu_model* model) {
    if (!model) return;
    const Gil gil;
    akunu_status status = AKUNU_OK;
    call(status, "close", Ref(Py_BuildValue("(O)", model->object)));
    Py_DECREF(model->object);
    delete model;
}

akunu_status akunu_cancel(akunu_model* model) {
    akunu_status status = usable(model);
    if (status != AKUNU_OK) return status;
    const Gil gil;
    call(status, "cancel", Ref(Py_BuildValue("(O)", model->object)));
    return status;
}

akunu_status akunu_tokenize(akunu_model* model, const char* text, uint32_t* ids, size_t* count) {
    akunu_status status = usable(model && text && count && (ids || *count == 0));
    if (status != AKUNU_OK) return status;
    const Gil gil;
    const Ref answer = call(status, "tokenize", Ref(Py_BuildValue("Os", model->object, text)));
    if (!answer) return status;
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (!has_bytes(answer, bytes, size)) return AKUNU_ERROR;
    const std::size_t found = static_cast<std::size_t>(size) / sizeof(uint32_t);
    if (const std::size_t fits = found < *count ? found : *count) std::memcpy(ids, bytes, fits * sizeof(uint32_t));
    *count = found;
    return AKUNU_OK;
}

akunu_status akunu_detokenize(akunu_model* model, const uint32_t* ids, size_t count, akunu_result* result) {
    const akunu_status status = usable(model && (ids || count == 0) && result);
    if (status != AKUNU_OK) return status;
    const Gil gil;
    return output("detokenize", model, bytes_of(ids, count * sizeof(uint32_t)), nullptr, result);
}

akunu_status akunu_generate(akunu_model* model, const char* prompt, const akunu_output_options* options,
                            akunu_result* result) {
    const akunu_status status = usable(model && prompt);
    if (status != AKUNU_OK) return status;
    const Gil gil;
    return output("generate", model, PyUnicode_FromString(prompt), options, result);
}

akunu_status akunu_chat(akunu_model* model, const char* messages, const akunu_output_options* options,
                        akunu_result* result) {
    const akunu_status status = usable(model && messages);
    if (status != AKUNU_OK) return status;
    const Gil gil;
    return output("chat", model, PyUnicode_FromString(messages), options, result);
}

akunu_status akunu_embed(akunu_model* model, const char* const* texts, size_t count,
                         const akunu_output_options* options, float** vectors, size_t* dimensions) {
    akunu_status status = usable(model && texts && count && vectors && dimensions);
    if (status != AKUNU_OK) return status;
    *vectors = nullptr;
    status = sized(options, "options", offsetof(akunu_output_options, user) + sizeof(void*));
    if (status != AKUNU_OK) return status;
    const akunu_output_options asked = known(options);
    const Gil gil;
    const Ref list(PyList_New(0));
    for (std::size_t i = 0; i < count; ++i) {
        if (!texts[i]) {
            return failed(AKUNU_BAD_ARGUMENT,
                          "texts: text " + std::to_string(i) + " of " + std::to_string(count) + " is NULL");
        }
        const Ref text(PyUnicode_FromString(texts[i]));
        if (!text || PyList_Append(list.get(), text.get()) != 0) return failed(AKUNU_BAD_ARGUMENT, raised());
    }
    const Ref arguments(Py_BuildValue("OOs", model->object, list.get(), asked.options ? asked.options : ""));
    const Ref answer = call(status, "embed", arguments);
    if (!answer) return status;
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (!has_bytes(answer, bytes, size)) return AKUNU_ERROR;
    *vectors = reinterpret_cast<float*>(copied(bytes, size));
    if (!*vectors) return failed(AKUNU_NO_MEMORY, "out of memory");
    *dimensions = static_cast<std::size_t>(size) / sizeof(float) / count;
    return AKUNU_OK;
}

akunu_status akunu_transcribe(akunu_model* model, const float* samples, size_t count,
                              const akunu_output_options* options, akunu_result* result) {
    const akunu_status status = usable(model && (samples || count == 0));
    if (status != AKUNU_OK) return status;
    const Gil gil;
    return output("transcribe", model, bytes_of(samples, count * sizeof(float)), options, result);
}

akunu_status akunu_transcribe_file(akunu_model* model, const char* path, const akunu_output_options* options,
                                   akunu_result* result) {
    const akunu_status status = usable(model && path);
    if (status != AKUNU_OK) return status;
    const Gil gil;
    return output("transcribe", model, PyUnicode_FromString(path), options, result);
}

void akunu_result_free(akunu_result* result) {
    if (!result) return;
    const akunu_result had = known(result);
    std::free(had.text);
    std::free(had.json);
    give(result, akunu_result{});
}

void akunu_free(void* memory) { std::free(memory); }
