// The compute part of Metal.
#pragma once
#pragma clang system_header
#include <Metal/MTLCommandBuffer.h>
#include <Metal/MTLCommandEncoder.h>
#include <Metal/MTLComputePipeline.h>
#include <Metal/MTLCounters.h>
#include <Metal/MTLDevice.h>
#include <Metal/MTLEvent.h>
#include <Metal/MTLIndirectCommandBuffer.h>
#include <Metal/MTLLibrary.h>
#include <Metal/MTLResource.h>
#include <Metal/MTLTypes.h>
