#include "cuda/host/pieces.h"

#include <algorithm>
#include <cstddef>

namespace akunu::cuda {

// Commands differ: a launch may take twice as long as the one before it made believe.
u32 Pace::commands(double longest, u32 rows) const {
    const double n = longest / 2 / (seconds_of_row_ * rows);
    return n < 1 ? 1 : static_cast<u32>(std::min(n, 1e9));
}

void Pace::learn(u32 commands, u32 rows, double seconds) {
    const double measured = seconds / (static_cast<double>(commands) * rows);
    seconds_of_row_ = std::max(measured, seconds_of_row_ / 2);
}

Piece piece_of(const LaunchParams& whole, std::span<const std::span<const Command>> lists, u32 begin, u32 most) {
    Piece out{whole, 0};
    u32& n = out.launch.launch.n_segments = 0;
    for (u32 i = 0; i < whole.launch.n_segments && out.commands < most; ++i) {
        const auto commands = lists[i];
        if (begin >= commands.size()) {
            begin -= static_cast<u32>(commands.size());
            continue;
        }
        std::size_t end = std::min<std::size_t>(commands.size(), begin + std::size_t{most - out.commands});
        while (end < commands.size() && (commands[end].reads_words != 0 || commands[end].as_before != 0)) ++end;
        LaunchSegment& s = out.launch.segments[n++];
        s = whole.segments[i];
        for (const Command& c : commands.first(begin)) s.streams += c.streams;
        s.commands += begin;
        s.n_commands = static_cast<u32>(end - begin);
        s.n_streams = 0;
        for (const Command& c : commands.subspan(begin, s.n_commands)) s.n_streams += c.streams;
        out.commands += s.n_commands;
        begin = 0;
    }
    return out;
}

}  // namespace akunu::cuda
