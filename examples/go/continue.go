// Continue a prompt and print the text while it is written.
//
//	CGO_CFLAGS=$(akunu config --cflags) CGO_LDFLAGS=$(akunu config --libs) CGO_LDFLAGS_ALLOW='-Wl,.*' \
//		go build continue.go
//	./continue ember "Once upon a time"
package main

/*
#include <akunu.h>
#include <stdlib.h>

extern int printText(char *text, size_t size, void *user);

static akunu_status continued(akunu_model *model, const char *prompt, const char *settings) {
	akunu_output_options options = {.size = sizeof options, .options = settings};
	options.on_text = (akunu_callback)printText;
	return akunu_generate(model, prompt, &options, NULL);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

//export printText
func printText(text *C.char, size C.size_t, user unsafe.Pointer) C.int {
	if _, err := os.Stdout.Write(C.GoBytes(unsafe.Pointer(text), C.int(size))); err != nil {
		return 1 // nobody reads it: end the output
	}
	return 0
}

func check(status C.akunu_status) {
	if status != C.AKUNU_OK {
		fmt.Fprintln(os.Stderr, C.GoString(C.akunu_error()))
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: continue MODEL PROMPT")
		os.Exit(2)
	}
	runtime.LockOSThread() // akunu_error is of a thread
	name, prompt := C.CString(os.Args[1]), C.CString(os.Args[2])
	settings := C.CString(`{"temperature": 0, "max_tokens": 40}`)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(prompt))
	defer C.free(unsafe.Pointer(settings))
	var model *C.akunu_model
	check(C.akunu_load(name, nil, &model))
	check(C.continued(model, prompt, settings))
	C.akunu_close(model)
	fmt.Println()
}
