// Continues a prompt and prints the text while it is written.
//
//     swiftc continue.swift -import-objc-header $(akunu config --cflags | sed 's/^-I//')/akunu.h \
//         $(akunu config --libs | sed 's/-Wl,/-Xlinker /g; s/,/ -Xlinker /g') -o continue
//     ./continue ember "Once upon a time"
import Foundation

func check(_ status: akunu_status) {
    if status != AKUNU_OK {
        FileHandle.standardError.write((String(cString: akunu_error()) + "\n").data(using: .utf8)!)
        exit(1)
    }
}

guard CommandLine.arguments.count == 3 else {
    FileHandle.standardError.write("usage: continue MODEL PROMPT\n".data(using: .utf8)!)
    exit(2)
}
var model: OpaquePointer?
check(akunu_load(CommandLine.arguments[1], nil, &model))
"{\"temperature\": 0, \"max_tokens\": 40}".withCString { settings in
    var options = akunu_output_options()
    options.size = MemoryLayout<akunu_output_options>.size
    options.options = settings
    options.on_text = { text, size, _ in
        FileHandle.standardOutput.write(Data(bytes: text!, count: size))
        return 0
    }
    check(akunu_generate(model, CommandLine.arguments[2], &options, nil))
}
akunu_close(model)
print()
