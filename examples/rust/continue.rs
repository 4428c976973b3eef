// Continues a prompt and prints the text while it is written.
//
//     rustc continue.rs -C link-args="$(akunu config --libs)"
//     ./continue ember "Once upon a time"
use std::ffi::{CStr, CString};
use std::io::Write;
use std::os::raw::{c_char, c_int, c_void}; // Rust 1.63, which Debian 12 has, knows them by this name alone
use std::{env, process, ptr, slice};

#[repr(C)]
struct OutputOptions {
    size: usize,
    options: *const c_char,
    on_text: Option<extern "C" fn(*const c_char, usize, *mut c_void) -> c_int>,
    user: *mut c_void,
}

extern "C" {
    fn akunu_abi() -> u32;
    fn akunu_error() -> *const c_char;
    fn akunu_load(model: *const c_char, options: *const c_void, out: *mut *mut c_void) -> c_int;
    fn akunu_generate(
        model: *mut c_void,
        prompt: *const c_char,
        options: *const OutputOptions,
        result: *mut c_void,
    ) -> c_int;
    fn akunu_close(model: *mut c_void);
}

extern "C" fn print(text: *const c_char, size: usize, _user: *mut c_void) -> c_int {
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), size) };
    let mut out = std::io::stdout();
    (out.write_all(bytes).is_err() || out.flush().is_err()).into() // end the output where nobody reads it
}

fn check(status: c_int) {
    if status != 0 {
        eprintln!("{}", unsafe { CStr::from_ptr(akunu_error()) }.to_string_lossy());
        process::exit(1);
    }
}

fn main() {
    let words: Vec<CString> = env::args().skip(1).map(|word| CString::new(word).unwrap()).collect();
    if words.len() != 2 {
        eprintln!("usage: continue MODEL PROMPT");
        process::exit(2);
    }
    let (name, prompt) = (&words[0], &words[1]);
    let settings = CString::new(r#"{"temperature": 0, "max_tokens": 40}"#).unwrap();
    let options = OutputOptions {
        size: std::mem::size_of::<OutputOptions>(),
        options: settings.as_ptr(),
        on_text: Some(print),
        user: ptr::null_mut(),
    };
    let mut model = ptr::null_mut();
    unsafe {
        assert_eq!(akunu_abi(), 1);
        check(akunu_load(name.as_ptr(), ptr::null(), &mut model));
        check(akunu_generate(model, prompt.as_ptr(), &options, ptr::null_mut()));
        akunu_close(model);
    }
    println!();
}
