#pragma once
#pragma clang system_header
#include <Foundation/NSCollections.h>
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>
