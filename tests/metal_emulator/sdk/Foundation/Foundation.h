#pragma once
#pragma clang system_header
#include <Foundation/NSObject.h>
#include <Foundation/NSString.h>
#include <Foundation/NSCollections.h>
