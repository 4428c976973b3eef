// The compute part of Metal.
#pragma once
#pragma clang system_header
#include <Metal/MTLTypes.h>
#include <Metal/MTLResource.h>
#include <Metal/MTLLibrary.h>
#include <Metal/MTLComputePipeline.h>
#include <Metal/MTLEvent.h>
#include <Metal/MTLCounters.h>
#include <Metal/MTLIndirectCommandBuffer.h>
#include <Metal/MTLCommandEncoder.h>
#include <Metal/MTLCommandBuffer.h>
#include <Metal/MTLDevice.h>
