// Byte-level BPE by ranked merges: of all adjacent pairs that a merge joins, that of the lowest rank is joined, the
// leftmost first, until none is left. What cuts a text into the pieces that are encoded here is not known here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/keyed_table.h"

namespace akunu {

class ByteMerges {
  public:
    // Byte strings side by side.
    class Strings {
      public:
        void add(std::string_view text) {
            bytes_.append(text);
            ends_.push_back(bytes_.size());
        }
        std::size_t size() const { return ends_.size() - 1; }
        std::string_view operator[](std::size_t i) const {
            return std::string_view(bytes_).substr(ends_[i], ends_[i + 1] - ends_[i]);
        }

      private:
        std::string bytes_;
        std::vector<std::size_t> ends_ = {0};
    };

    // Token i has the bytes `tokens[i]`; one without bytes is never written. Of tokens with the same bytes the last
    // one is. Merge r joins `merges[2 r]` and `merges[2 r + 1]`; it counts if both and what they give are tokens.
    // `whole_first`: a piece that is a token is that token, whether or not merges lead to it.
    ByteMerges(Strings tokens, const Strings& merges, bool whole_first);

    // Appends the ids of a piece of a text. Bytes that are no tokens are left out.
    void encode(std::string_view piece, std::vector<std::uint32_t>& ids) const;

  private:
    struct Id {
        std::uint64_t head = 0;  // its first eight bytes: of most tokens all, so that the others are seldom looked at
        std::uint32_t size = 0, token = kNoToken;
    };
    struct Merge {
        std::uint32_t left = 0, right = 0;
        std::uint32_t rank = 0, token = kNoToken;
    };

    bool has(const Id& id, std::string_view bytes) const;
    std::uint32_t token_of(std::string_view bytes) const;
    const Merge& merge_of(std::uint32_t left, std::uint32_t right) const;

    Strings tokens_;
    bool whole_first_;
    KeyedHash hash_;
    KeyedTable<Id> ids_;
    KeyedTable<Merge> merges_;
    std::vector<std::uint32_t> of_byte_;
};

}  // namespace akunu
