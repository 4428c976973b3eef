// Linked into every module (library or program) that holds Objective-C code: hands its sections to
// the runtime.  clang gives them names that are C identifiers on ELF, so the linker defines bounds.
#define SECTION(name)                                                                \
    extern const char* __start_##name[] __attribute__((weak, visibility("hidden"))); \
    extern const char* __stop_##name[] __attribute__((weak, visibility("hidden")));
extern "C" {
SECTION(objc_selrefs)
SECTION(objc_classlist)
SECTION(objc_catlist)
void objcrt_register(void*, void*, void*, void*, void*, void*);
__attribute__((constructor(101))) static void register_module() {
    objcrt_register(__start_objc_selrefs, __stop_objc_selrefs, __start_objc_classlist, __stop_objc_classlist,
                    __start_objc_catlist, __stop_objc_catlist);
}
}
