// Quantised matrices of GPTQ, AWQ, compressed-tensors and bitsandbytes, as tensors of other names and layouts: those
// that MLX has for codes with a scale and a bias for each group, or floats where a matrix has no such groups.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/tensor_files.h"

namespace akunu {

// Where the tensors of a matrix of `rows` x `cols` lie. A value is scale * (code - zero).
struct PackedMatrix {
    enum class Layout : std::uint8_t {
        Gptq,   // codes I32 [cols * bits / 32, rows], a stream of bits down a column; scales [groups, rows]; zeros I32
                // [groups, rows * bits / 32], a stream along a row
        Awq,    // codes I32 [cols, rows / 8], in whose words the eight rows 0, 2, 4, 6, 1, 3, 5, 7 follow each other;
                // scales [groups, rows]; zeros I32 [groups, rows / 8], as the codes
        Rows,   // codes I32 [rows, cols * bits / 32], a stream along a row; scales [rows, groups]; zeros I32
                // [rows * bits / 32, groups], a stream down a column
        Bytes,  // codes I8 [rows, cols]; scales of each row
        Table,  // codes U8, two in a byte, the first one high, of rows that follow each other; each is a place in a
                // table of 16 floats; scales of each `group` elements of all rows together
    };
    std::string name;  // of the new tensors, up to the last dot
    Layout layout = Layout::Gptq;
    unsigned bits = 0;
    std::uint64_t rows = 0, cols = 0;
    std::uint64_t group = 0;           // elements of a row that have one scale
    std::string codes, scales, zeros;  // names; `zeros` may be empty
    unsigned zero = 0;       // the zero where there are no tensors of them; else what is added to each of Gptq
    bool symmetric = false;  // all zeros are the same power of two, as far as the settings say
    std::string index = {};  // I32 [cols], the group of each column, or empty: they follow each other
    float unit = 1;          // scales are multiplied with it
    // Of Table: its values; where scales are U8, places in a table of 256 floats, that table, the factor of each 256 of
    // them, and what is added to their products.
    std::string table = {}, scale_table = {}, scale_factors = {};
    float scale_offset = 0;
    DType floats = DType::F16;  // the type of a matrix that becomes floats
};

// Other files with such matrices repacked: `name` + "weight", "scales" and "biases", or floats in "weight" alone, where
// there is an index, or a table. Groups become those of 128, 64 or 32 elements. Scales keep their type where biases
// are exact in it, and become F32 elsewhere. The tensors are made when their bytes are asked for.
class RepackedFiles final : public TensorFiles {
  public:
    // The tensors that matrices are made of are left out, and those of `left_out`. ModelFileError when a tensor is
    // missing or has another shape or type; UnsupportedError for rows that are no multiple of 32.
    RepackedFiles(const TensorFiles& from, const std::vector<PackedMatrix>& matrices,
                  const std::vector<std::string>& left_out);
};

}  // namespace akunu
