#pragma once
#pragma clang system_header
#include <Metal/MTLTypes.h>
NS_ASSUME_NONNULL_BEGIN
@protocol MTLEvent <NSObject>
@property(nullable, readonly) id<MTLDevice> device;
@property(nullable, copy, atomic) NSString* label;
@end
@protocol MTLSharedEvent;
typedef void (^MTLSharedEventNotificationBlock)(id<MTLSharedEvent>, uint64_t value);
@interface MTLSharedEventListener : NSObject
@end
@protocol MTLSharedEvent <MTLEvent>
@property(readwrite) uint64_t signaledValue;
- (void)notifyListener:(MTLSharedEventListener*)l atValue:(uint64_t)v block:(MTLSharedEventNotificationBlock)b;
- (BOOL)waitUntilSignaledValue:(uint64_t)v timeoutMS:(uint64_t)ms;
@end
@protocol MTLFence <NSObject>
@property(nullable, copy, atomic) NSString* label;
@end
NS_ASSUME_NONNULL_END
