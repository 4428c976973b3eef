#pragma once
#pragma clang system_header
#include <Metal/MTLTypes.h>
NS_ASSUME_NONNULL_BEGIN
typedef NS_ENUM(NSUInteger, MTLDataType) {
    MTLDataTypeNone = 0,
    MTLDataTypeFloat = 3,
    MTLDataTypeFloat2 = 4,
    MTLDataTypeFloat3 = 5,
    MTLDataTypeFloat4 = 6,
    MTLDataTypeHalf = 16,
    MTLDataTypeHalf2 = 17,
    MTLDataTypeHalf4 = 19,
    MTLDataTypeInt = 29,
    MTLDataTypeInt2 = 30,
    MTLDataTypeInt4 = 32,
    MTLDataTypeUInt = 33,
    MTLDataTypeUInt2 = 34,
    MTLDataTypeUInt3 = 35,
    MTLDataTypeUInt4 = 36,
    MTLDataTypeShort = 37,
    MTLDataTypeUShort = 41,
    MTLDataTypeChar = 45,
    MTLDataTypeUChar = 49,
    MTLDataTypeBool = 53,
    MTLDataTypeLong = 81,
    MTLDataTypeULong = 85,
    MTLDataTypeBFloat = 121,
};
typedef NS_ENUM(NSUInteger, MTLLanguageVersion) {
    MTLLanguageVersion2_0 = (2 << 16),
    MTLLanguageVersion2_1 = (2 << 16) + 1,
    MTLLanguageVersion2_2 = (2 << 16) + 2,
    MTLLanguageVersion2_3 = (2 << 16) + 3,
    MTLLanguageVersion2_4 = (2 << 16) + 4,
    MTLLanguageVersion3_0 = (3 << 16),
    MTLLanguageVersion3_1 = (3 << 16) + 1,
    MTLLanguageVersion3_2 = (3 << 16) + 2,
};
typedef NS_ENUM(NSInteger, MTLMathMode) { MTLMathModeSafe = 0, MTLMathModeRelaxed = 1, MTLMathModeFast = 2 };
typedef NS_ENUM(NSInteger, MTLMathFloatingPointFunctions) {
    MTLMathFloatingPointFunctionsFast = 0,
    MTLMathFloatingPointFunctionsPrecise = 1
};
typedef NS_ENUM(NSInteger, MTLLibraryOptimizationLevel) {
    MTLLibraryOptimizationLevelDefault = 0,
    MTLLibraryOptimizationLevelSize = 1
};
typedef NS_ENUM(NSUInteger, MTLLibraryError) {
    MTLLibraryErrorUnsupported = 1,
    MTLLibraryErrorInternal = 2,
    MTLLibraryErrorCompileFailure = 3,
    MTLLibraryErrorCompileWarning = 4,
    MTLLibraryErrorFunctionNotFound = 5,
    MTLLibraryErrorFileNotFound = 6,
};
typedef NS_ENUM(NSUInteger, MTLFunctionType) {
    MTLFunctionTypeVertex = 1,
    MTLFunctionTypeFragment = 2,
    MTLFunctionTypeKernel = 3
};
extern "C" NSErrorDomain const MTLLibraryErrorDomain;
@interface MTLCompileOptions : NSObject <NSCopying>
@property(nullable, copy, nonatomic) NSDictionary<NSString*, NSObject*>* preprocessorMacros;
@property(nonatomic) BOOL fastMathEnabled;
@property(nonatomic) MTLMathMode mathMode;
@property(nonatomic) MTLMathFloatingPointFunctions mathFloatingPointFunctions;
@property(nonatomic) MTLLanguageVersion languageVersion;
@property(nonatomic) BOOL preserveInvariance;
@property(nonatomic) MTLLibraryOptimizationLevel optimizationLevel;
@end
@interface MTLFunctionConstantValues : NSObject <NSCopying>
- (void)setConstantValue:(const void*)v type:(MTLDataType)t atIndex:(NSUInteger)i;
- (void)setConstantValues:(const void*)v type:(MTLDataType)t withRange:(NSRange)r;
- (void)setConstantValue:(const void*)v type:(MTLDataType)t withName:(NSString*)n;
- (void)reset;
@end
@interface MTLFunctionConstant : NSObject
@property(readonly) NSString* name;
@property(readonly) MTLDataType type;
@property(readonly) NSUInteger index;
@property(readonly) BOOL required;
@end
@protocol MTLFunction <NSObject>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) MTLFunctionType functionType;
@property(readonly) NSString* name;
@property(readonly) NSDictionary<NSString*, MTLFunctionConstant*>* functionConstantsDictionary;
@end
@protocol MTLLibrary <NSObject>
@property(nullable, copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSArray<NSString*>* functionNames;
- (nullable id<MTLFunction>)newFunctionWithName:(NSString*)n;
- (nullable id<MTLFunction>)newFunctionWithName:(NSString*)n
                                 constantValues:(MTLFunctionConstantValues*)c
                                          error:(__autoreleasing NSError* _Nullable* _Nullable)e;
@end
NS_ASSUME_NONNULL_END
