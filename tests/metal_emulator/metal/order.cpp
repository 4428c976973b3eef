#include "order.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace fakemetal {
namespace {
// Never destroyed: queues may end after the program's own objects.
std::mutex& g_mutex = *new std::mutex;
std::map<uint64_t, std::vector<uint64_t>>& g_in_flight = *new std::map<uint64_t, std::vector<uint64_t>>;
}  // namespace

uint64_t next_command_buffer() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}
void order_committed(uint64_t number, std::vector<uint64_t> behind) {
    std::lock_guard lock(g_mutex);
    g_in_flight[number] = std::move(behind);
}
void order_completed(uint64_t number) {
    std::lock_guard lock(g_mutex);
    g_in_flight.erase(number);
}
bool is_ordered(uint64_t earlier, uint64_t later) {
    std::lock_guard lock(g_mutex);
    if (!g_in_flight.contains(earlier)) return true;
    std::vector<uint64_t> open{later};
    while (!open.empty()) {
        const uint64_t at = open.back();
        open.pop_back();
        if (at == earlier) return true;
        const auto found = g_in_flight.find(at);
        if (found == g_in_flight.end()) continue;
        for (const uint64_t b : found->second)
            if (b < at) open.push_back(b);
    }
    return false;
}
}  // namespace fakemetal
