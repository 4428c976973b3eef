#include "cuda/host/program.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cuda/host/schedule.h"
#include "cuda/host/streams.h"

namespace akunu::cuda {

namespace {

// Whether the commands of a few rows leave a ring in a block's memory, which norms that are part of matmuls take.
bool leaves_ring(const DispatchTable& table, const Schedules& s) {
    const ReplayArgs most{.rows = kByteRows, .logits = kByteRows};
    const OpMemory m = memory_of(table, s, s.few, s.few_streams, most);
    return kSharedHead + m.bytes + kRingHead + kLeastSlots * m.slot_bytes + 128 <= s.geometry.shared_bytes;
}

}  // namespace

Schedules compile_schedules(const DispatchTable& table, const Geometry& geometry) {
    Schedules s{{}, {}, {}, {}, {}, {}, geometry};
    s.plain = compile_commands(table, geometry);
    s.fused = fused(table, s.plain, geometry);
    s.few = table.phase == "batch" ? fused_of_few(table, s.plain, geometry) : s.fused;
    s.streams = streams_of(table, s.plain, geometry);
    s.fused_streams = streams_of(table, s.fused, geometry);
    s.few_streams = streams_of(table, s.few, geometry);
    if (!leaves_ring(table, s)) {
        s.few = s.fused;
        s.few_streams = s.fused_streams;
    }
    check_schedule(table, s.plain, s.streams, geometry.sizes());
    check_schedule(table, s.fused, s.fused_streams, geometry.sizes());
    check_schedule(table, s.few, s.few_streams, geometry.sizes());
    return s;
}

namespace {

template <typename T>
DeviceBuffer uploaded(Device& device, std::span<const T> values) {
    DeviceBuffer out(device, std::max<std::size_t>(values.size_bytes(), 16), MemoryKind::kDevice);
    device.upload(out.at(), std::as_bytes(values));
    return out;
}

}  // namespace

CommandList::CommandList(Device& device, std::vector<Command> commands, std::vector<Stream> streams, u32 blocks)
    : commands_(std::move(commands)),
      read_(std::move(streams)),
      needs_(std::make_shared<const Needs>(needs_of(commands_, blocks))),
      buffer_(uploaded<Command>(device, commands_)),
      streams_(uploaded<Stream>(device, read_)) {}

CudaProgram::CudaProgram(DispatchTable t, Device& device, Schedules s, DeviceBuffer box_maps)
    : Program(std::move(t)),
      plain_(device, s.plain, s.streams, s.geometry.blocks),
      fused_(device, s.fused, s.fused_streams, s.geometry.blocks),
      few_(device, s.few, s.few_streams, s.geometry.blocks),
      box_maps_(std::move(box_maps)),
      schedules_(std::move(s)) {
    note_merged(table, fused_.commands());
    for (const Command& c : fused_.commands()) {
        if (c.op != kOpDecodeAttention) continue;
        const auto& p = reinterpret_cast<const DecodeAttentionParams&>(c.params);
        run_ = std::min(run_, p.run);
        units_ = std::max(units_, p.n_heads / group_part(p.n_heads / p.n_kv_heads));
    }
    const auto mirrors = mirrors_of(table);
    mirrors_ = uploaded<Mirror>(device, mirrors);
    n_mirrors_ = static_cast<u32>(mirrors.size());
}

LaunchSegment CudaProgram::segment(const ReplayArgs& args, std::uint32_t most) const {
    const CommandList& of = list(args, most);
    const auto commands = of.commands().first(std::min<std::size_t>(most, of.commands().size()));
    u32 streams = 0;
    for (const Command& c : commands) streams += c.streams;
    return {.commands = of.at(),
            .mirrors = mirrors_.at().as<const Mirror>(),
            .streams = of.streams(),
            .n_commands = static_cast<u32>(commands.size()),
            .n_mirrors = n_mirrors_,
            .n_streams = streams,
            .rows = args.rows,
            .logits = args.logits,
            .step = args.step,
            .keys = args.keys};
}

}  // namespace akunu::cuda
