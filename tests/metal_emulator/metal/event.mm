// Shared events: the host's and the queues' way to wait for each other.
#import "fake.h"

using namespace fakemetal;

@implementation FMEvent
- (uint64_t)signaledValue {
    std::lock_guard lock(mutex);
    return value;
}
- (void)setSignaledValue:(uint64_t)v {
    std::vector<std::pair<uint64_t, MTLSharedEventNotificationBlock>> due;
    {
        std::lock_guard lock(mutex);
        value = v;
        for (size_t i = waiting.size(); i--;) {
            if (waiting[i].first > v) continue;
            due.push_back(waiting[i]);
            waiting.erase(waiting.begin() + static_cast<long>(i));
        }
    }
    changed.notify_all();
    for (const auto& [at, block] : due) block(self, v);
}
- (BOOL)waitUntilSignaledValue:(uint64_t)v timeoutMS:(uint64_t)ms {
    std::unique_lock lock(mutex);
    // The clock cannot add the largest timeouts.
    const auto limit = std::chrono::milliseconds(ms > 3600000 ? 3600000 : ms);
    return changed.wait_for(lock, limit, [&] { return value >= v; });
}
- (void)notifyListener:(MTLSharedEventListener*)l atValue:(uint64_t)v block:(MTLSharedEventNotificationBlock)b {
    if (!l) invalid("notifyListener: without a listener");
    {
        std::lock_guard lock(mutex);
        if (value < v) {
            waiting.emplace_back(v, b);
            return;
        }
    }
    b(self, v);
}
@end
@implementation MTLSharedEventListener
@end
