// The thread of one command queue: runs committed command buffers in order, later.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace fakemetal {

class Queue {
  public:
    Queue();
    ~Queue();  // lets what is queued finish first
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    void push(std::function<void()> work);

    struct State;

  private:
    std::shared_ptr<State> state_;  // outlives the queue when its last owner is its own thread
};

void drain_queues();
void record_fault(const std::string& message);
std::string take_faults();
}  // namespace fakemetal
