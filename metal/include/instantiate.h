// A kernel template's instantiation under a name of its own.
#pragma once

#define AKUNU_KERNEL(name, ...) template [[host_name(name)]] [[kernel]] decltype(__VA_ARGS__) __VA_ARGS__;
