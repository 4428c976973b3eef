// How a FileSource hands out tensors that lie at any address of a SafeTensors file: in the mapping where a GPU may read
// them by fours, else from the file, else as an aligned copy.
#include "engine/file_source.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "../cpp/check.h"
#include "formats/safetensors.h"

namespace {

using namespace akunu;
using akunu::test::check;

// Two rows of three F32, 1 to 6, that begin `shift` bytes after a multiple of 16.
std::string write(std::size_t shift) {
    std::string header = R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
    while ((8 + header.size()) % 16 != shift) header += ' ';
    const std::uint64_t length = header.size();
    const auto path = std::filesystem::temp_directory_path() / ("file_source_test-" + std::to_string(shift));
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header;
    for (int i = 1; i <= 6; ++i) {
        const auto value = static_cast<float>(i);
        out.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return path.string();
}

void try_source(std::size_t shift, float add, bool in_mapping, bool in_file) {
    const std::string path = write(shift);
    auto files = std::make_shared<const SafetensorsFiles>(SafetensorsFiles::open({path}));
    const auto mapping = files->files()[0]->bytes();
    FileSource source(files, {{"weight", {"t", 0, 2, 3, add}}});
    const HostTensor tensor = source.get("weight");
    check(tensor.rows == 2 && tensor.cols == 3 && tensor.bytes.size() == 24, "its sizes");
    check(tensor.mapping.data() == (in_mapping ? mapping.data() : nullptr), "whether it may stay in the mapping");
    const bool inside = tensor.bytes.data() >= mapping.data() && tensor.bytes.data() < mapping.data() + mapping.size();
    check(inside == in_file, "whether it is the file's bytes");
    check(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignof(float) == 0, "its alignment");
    for (int i = 0; i < 6; ++i) {
        float value;
        std::memcpy(&value, tensor.bytes.data() + 4 * i, sizeof value);
        check(value == static_cast<float>(i + 1) + add, "a value");
    }
    source.done("weight");
    std::filesystem::remove(path);
}

}  // namespace

int main() {
    try_source(0, 0, true, true);
    for (const std::size_t shift : {4, 8, 12}) try_source(shift, 0, false, true);
    for (const std::size_t shift : {1, 2, 3, 5, 15}) try_source(shift, 0, false, false);
    try_source(0, 1, false, false);
    std::printf("passed\n");
    return 0;
}
