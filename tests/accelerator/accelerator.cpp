// An accelerator without hardware: a device of torch (its PrivateUse1 slot) whose memory nobody but its kernels can reach.
//
// Its arrays' pointers are of pages without any permission. The same memory is mapped a second time, where only kernels
// know: they are the CPU's, on tensors that alias the arguments there. Anybody else who reads or writes at the pointers
// faults. The fault is counted, a signal tells Python's main thread, and until the next kernel the page is open, so that
// the instruction can end. Copies to and from the host and waits are counted too, and can be forbidden: then they raise.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/TensorBody.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue_inl.h>
#include <ATen/core/stack.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_set>
#include <vector>

extern "C" int PyErr_SetInterruptEx(int signum); // of the interpreter that loads this; may be called from a handler

namespace {
using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::Storage;
using c10::TensorImpl;

constexpr auto TYPE = c10::DeviceType::PrivateUse1;
constexpr DeviceIndex DEVICES = 2;

// ------------------------------------------------------------------ what is counted
enum Event { KERNEL, TO_DEVICE, TO_HOST, WAIT, FAULT, EVENTS };
const char* const WORDS[EVENTS] = {"a kernel", "a copy to the device", "a copy to the host", "a wait", "a fault"};
std::atomic<int64_t> counts[EVENTS];
std::atomic<int64_t> allocated;
std::atomic<int> forbidden; // a bit for each event
void (*told)(int) = nullptr; // called with each forbidden event: Python notes where it is

void happened(Event event) {
  ++counts[event];
  if (forbidden & (1 << event)) {
    if (told)
      told(event);
    TORCH_CHECK(false, "the accelerator was forbidden ", WORDS[event]);
  }
}

// ------------------------------------------------------------------ memory
// One memory, mapped twice: where the device's pointers point, nobody has permission; kernels add `REACH` to them.
const size_t PAGE = sysconf(_SC_PAGESIZE);
constexpr size_t ADDRESSES = size_t(1) << 38;

char* mapped(int file, int permission) {
  void* const at = mmap(nullptr, ADDRESSES, permission, MAP_SHARED | MAP_NORESERVE, file, 0);
  TORCH_CHECK(file >= 0 && at != MAP_FAILED, "the accelerator has no memory: ", std::strerror(errno));
  return static_cast<char*>(at);
}

int made_file() {
  const int file = memfd_create("accelerator", MFD_CLOEXEC);
  return file >= 0 && ftruncate(file, ADDRESSES) == 0 ? file : -1;
}

const int file = made_file();
char* const arena = mapped(file, PROT_NONE);
const ptrdiff_t REACH = mapped(file, PROT_READ | PROT_WRITE) - arena;

bool in_arena(const char* at) {
  return at >= arena && at < arena + ADDRESSES;
}

std::array<std::atomic<char*>, 256> faulted; // pages that faults have opened
int announced = 0; // the signal that Python is sent at a fault
struct sigaction before;

void at_fault(int number, siginfo_t* info, void*) {
  char* const at = static_cast<char*>(info->si_addr);
  if (!in_arena(at)) { // somebody else's: let them have it, at the same instruction
    sigaction(number, &before, nullptr);
    return;
  }
  char* const page = arena + (at - arena) / PAGE * PAGE;
  faulted[counts[FAULT]++ % faulted.size()] = page;
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
  PyErr_SetInterruptEx(announced);
}

void close_faulted() {
  for (auto& page : faulted)
    if (char* const opened = page.exchange(nullptr))
      mprotect(opened, PAGE, PROT_NONE);
}

class Memory {
  std::mutex turn;
  std::map<char*, size_t> live;
  std::map<size_t, std::vector<char*>> idle; // by size
  char* end = arena;

 public:
  char* allocate(size_t asked) {
    if (asked == 0)
      return nullptr;
    size_t bytes = 64;
    while (bytes < asked)
      bytes *= 2;
    std::lock_guard<std::mutex> held(turn);
    auto& found = idle[bytes];
    char* at = end;
    if (found.empty()) {
      TORCH_CHECK(end + bytes <= arena + ADDRESSES, "the accelerator has no memory left");
      end += bytes;
    } else {
      at = found.back();
      found.pop_back();
    }
    std::memset(at + REACH, 0xff, asked); // NaN: who reads what nobody wrote will see it
    live[at] = bytes;
    allocated += bytes;
    return at;
  }

  void free(char* at) {
    if (at == nullptr)
      return;
    std::lock_guard<std::mutex> held(turn);
    const auto found = live.find(at);
    const size_t bytes = found->second;
    if (bytes >= 1 << 20)
      fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at - arena, bytes);
    live.erase(found);
    idle[bytes].push_back(at);
    allocated -= bytes;
  }
};

Memory& memory() { // never destroyed: arrays may outlive what destroys it
  static auto* const all = new Memory;
  return *all;
}

void release(void* at) {
  memory().free(static_cast<char*>(at));
}

// Where a kernel finds what lies at an address.
void* reached(const void* at) {
  char* const p = static_cast<char*>(const_cast<void*>(at));
  return in_arena(p) ? p + REACH : p;
}

thread_local DeviceIndex current = 0;

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    char* const at = memory().allocate(n);
    return {at, at, &release, Device(TYPE, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
  void copy_data(void* to, const void* from, size_t n) const override {
    std::memmove(reached(to), reached(from), n);
  }
};
DeviceAllocator device_allocator;
REGISTER_ALLOCATOR(TYPE, &device_allocator)

// Memory for an aliasing tensor that a kernel resizes.
struct AliasAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t n) override {
    char* const at = memory().allocate(n);
    return {reached(at), at, &release, Device(c10::DeviceType::CPU)};
  }
  void copy_data(void* to, const void* from, size_t n) const override {
    std::memmove(to, from, n);
  }
};
AliasAllocator alias_allocator;

// ------------------------------------------------------------------ the device to torch: guard, streams, draws
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return TYPE;
  }
  Device exchangeDevice(Device d) const override {
    const Device old = getDevice();
    uncheckedSetDevice(d);
    return old;
  }
  Device getDevice() const override {
    return {TYPE, current};
  }
  void setDevice(Device d) const override {
    TORCH_CHECK(d.index() < DEVICES, "there is no device ", d);
    uncheckedSetDevice(d);
  }
  void uncheckedSetDevice(Device d) const noexcept override {
    if (d.index() >= 0)
      current = d.index();
  }
  c10::Stream getStream(Device d) const override {
    return c10::Stream(c10::Stream::DEFAULT, d.has_index() ? d : getDevice());
  }
  c10::Stream getDefaultStream(Device d) const override {
    return getStream(d);
  }
  c10::Stream getStreamFromGlobalPool(Device d, bool) const override {
    return getStream(d);
  }
  c10::Stream getNewStream(Device d, int) const override {
    return getStream(d);
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    return getStream(s.device());
  }
  DeviceIndex deviceCount() const noexcept override {
    return DEVICES;
  }
  void record(void**, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  bool queryStream(const c10::Stream&) const override {
    return true;
  }
  void synchronizeStream(const c10::Stream&) const override {
    happened(WAIT);
  }
  void synchronizeEvent(void*) const override {
    happened(WAIT);
  }
  void synchronizeDevice(const DeviceIndex) const override {
    happened(WAIT);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// Draws: the CPU's stream, by another name.
struct Draws final : c10::GeneratorImpl {
  at::Generator cpu;

  explicit Draws(DeviceIndex index, at::Generator generator = at::detail::createCPUGenerator())
      : GeneratorImpl(Device(TYPE, index), DispatchKeySet(DispatchKey::PrivateUse1)), cpu(std::move(generator)) {}
  void set_current_seed(uint64_t seed) override {
    cpu.set_current_seed(seed);
  }
  void set_offset(uint64_t offset) override {
    cpu.set_offset(offset);
  }
  uint64_t get_offset() const override {
    return cpu.get_offset();
  }
  uint64_t current_seed() const override {
    return cpu.current_seed();
  }
  uint64_t seed() override {
    return cpu.seed();
  }
  void set_state(const TensorImpl& state) override {
    cpu.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<TensorImpl> get_state() const override {
    return cpu.unsafeGetGeneratorImpl()->get_state();
  }
  Draws* clone_impl() const override {
    return new Draws(device_.index(), cpu.clone());
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool hasPrimaryContext(DeviceIndex) const override {
    return true;
  }
  DeviceIndex deviceCount() const override {
    return DEVICES;
  }
  void setCurrentDevice(DeviceIndex i) const override {
    Guard().setDevice({TYPE, i});
  }
  DeviceIndex getCurrentDevice() const override {
    return current;
  }
  DeviceIndex exchangeDevice(DeviceIndex i) const override {
    return Guard().exchangeDevice({TYPE, i}).index();
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex i) const override {
    return exchangeDevice(i);
  }
  const at::Generator& getDefaultGenerator(DeviceIndex i) const override {
    static at::Generator all[DEVICES] = {at::make_generator<Draws>(0), at::make_generator<Draws>(1)};
    return all[i < 0 ? current : i];
  }
  at::Generator getNewGenerator(DeviceIndex i) const override {
    return at::make_generator<Draws>(i < 0 ? current : i);
  }
  Device getDeviceFromPtr(void*) const override {
    return {TYPE, current};
  }
  void resizePrivateUse1Bytes(const Storage& storage, size_t bytes) const override {
    c10::DataPtr larger = device_allocator.allocate(bytes);
    device_allocator.copy_data(larger.mutable_get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.set_data_ptr_noswap(std::move(larger));
    storage.set_nbytes(bytes);
  }
};
Hooks hooks;

// ------------------------------------------------------------------ kernels
bool here(const Tensor& t) {
  return t.defined() && t.device().type() == TYPE;
}

Tensor tensor_of(Storage storage, DispatchKey key, const Tensor& like) {
  Tensor t = at::detail::make_tensor<TensorImpl>(std::move(storage), DispatchKeySet(key), like.dtype());
  t.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  t._set_conj(like.is_conj());
  t._set_neg(like.is_neg());
  return t;
}

// The tensors of one kernel: those of the device, and those of the CPU that alias them while it runs.
class Call {
  std::vector<std::pair<Storage, Storage>> storages;
  std::vector<std::pair<Tensor, Tensor>> tensors;

 public:
  Device device = Device(TYPE, -1);

  Tensor alias(const Tensor& t) {
    if (!here(t))
      return t;
    TORCH_CHECK_NOT_IMPLEMENTED(t.layout() == c10::kStrided, "the accelerator has dense arrays only");
    TORCH_CHECK(
        !device.has_index() || t.device() == device,
        "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ", t.device());
    device = t.device();
    for (const auto& [ours, theirs] : tensors)
      if (ours.is_same(t))
        return theirs;
    const Storage storage = t.storage();
    Storage found;
    for (const auto& [ours, theirs] : storages)
      if (ours.is_alias_of(storage))
        found = theirs;
    if (!found) {
      c10::DataPtr borrowed(reached(storage.data()), Device(c10::DeviceType::CPU));
      found = Storage(Storage::use_byte_size_t(), storage.nbytes(), std::move(borrowed), &alias_allocator, true);
      storages.emplace_back(storage, found);
    }
    tensors.emplace_back(t, tensor_of(found, DispatchKey::CPU, t));
    return tensors.back().second;
  }

  // What a kernel has done to its arguments besides writing to them: it may have resized them.
  void settle() {
    for (auto& [ours, theirs] : storages)
      if (reached(ours.data()) != theirs.data()) {
        void* const at = theirs.set_data_ptr(c10::DataPtr()).release_context();
        ours.set_data_ptr_noswap({at, at, &release, device});
        ours.set_nbytes(theirs.nbytes());
      }
    for (auto& [ours, theirs] : tensors)
      if (ours.sizes() != theirs.sizes() || ours.strides() != theirs.strides())
        ours.unsafeGetTensorImpl()->set_sizes_and_strides(theirs.sizes(), theirs.strides(), theirs.storage_offset());
  }

  // A result on the device: the argument that it is, a view of an argument, or a new array.
  Tensor result(const Tensor& y) {
    if (!y.defined() || here(y))
      return y;
    for (const auto& [ours, theirs] : tensors)
      if (theirs.is_same(y))
        return ours;
    for (const auto& [ours, theirs] : storages)
      if (theirs.is_alias_of(y.storage()))
        return tensor_of(ours, DispatchKey::PrivateUse1, y);
    const Device old = Guard().exchangeDevice(device);
    Storage made(Storage::use_byte_size_t(), y.storage().nbytes(), &device_allocator, true);
    Guard().setDevice(old);
    device_allocator.copy_data(made.mutable_data(), y.storage().data(), y.storage().nbytes());
    storages.emplace_back(made, y.storage());
    return tensor_of(made, DispatchKey::PrivateUse1, y);
  }
};

// Operators whose results' shapes depend on data: a device must be waited for to allocate them.
const std::unordered_set<std::string> SHAPED_BY_DATA = {
    "aten::nonzero", "aten::masked_select", "aten::_unique", "aten::_unique2", "aten::unique_dim",
    "aten::unique_consecutive", "aten::unique_dim_consecutive", "aten::bincount", "aten::linalg_eig",
    "aten::linalg_eigvals", "aten::_linalg_eigvals", "aten::linalg_lstsq", "aten::repeat_interleave"};
const std::unordered_set<std::string> WITH_INDICES = {"aten::index", "aten::_index_put_impl_", "aten::_unsafe_index"};
// operators whose numbers do not depend on data
const std::unordered_set<std::string> OF_SHAPES = {"aten::_fused_sdp_choice", "aten::is_same_size", "aten::is_set_to"};

void kernel(const c10::OperatorHandle& op, DispatchKeySet, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto& name = op.operator_name().name;
  const size_t n = schema.arguments().size(), first = stack->size() - n;
  const bool indexed = WITH_INDICES.count(name);
  Call call;
  Device asked(TYPE, -1);
  bool of_host = false, masked = false;

  const auto take = [&](const Tensor& t) {
    of_host |= t.defined() && t.device().is_cpu() && t.dim() > 0;
    return call.alias(t);
  };
  for (size_t i = 0; i < n; i++) {
    c10::IValue& v = (*stack)[first + i];
    if (v.isTensor()) {
      v = take(v.toTensor());
    } else if (v.isTensorList()) {
      c10::List<Tensor> all;
      for (const Tensor& t : v.toTensorVector())
        all.push_back(take(t));
      v = all;
    } else if (v.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> all;
      for (const std::optional<Tensor>& t : v.toOptionalTensorVector()) {
        if (t.has_value() && indexed) {
          masked |= t->scalar_type() == at::kBool || t->scalar_type() == at::kByte;
          if (t->defined() && t->device().is_cpu())
            happened(TO_DEVICE); // a GPU takes indices of the host, and copies them
          all.push_back(call.alias(*t));
        } else {
          all.push_back(t.has_value() ? std::optional<Tensor>(take(*t)) : t);
        }
      }
      v = all;
    } else if (v.isDevice() && v.toDevice().type() == TYPE) {
      asked = v.toDevice();
      v = Device(c10::DeviceType::CPU);
    } else if (schema.arguments()[i].name() == "generator") {
      const at::Generator g = v.isNone() ? hooks.getDefaultGenerator(current) : v.toGenerator();
      if (g.device().type() == TYPE)
        v = static_cast<Draws*>(g.unsafeGetGeneratorImpl())->cpu;
    }
  }
  TORCH_CHECK(
      !of_host || !call.device.has_index(), name,
      ": Expected all tensors to be on the same device, but found at least two devices, ", call.device, " and cpu!");
  if (!call.device.has_index())
    call.device = asked.has_index() ? asked : Device(TYPE, current);
  happened(KERNEL);
  close_faulted();
  if (SHAPED_BY_DATA.count(name) || (masked && name != "aten::_index_put_impl_"))
    happened(WAIT);
  else if (name == "aten::_local_scalar_dense")
    happened(TO_HOST), happened(WAIT);

  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), stack);

  call.settle();
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); i++) {
    c10::IValue& v = (*stack)[i];
    if (v.isTensor()) {
      v = call.result(v.toTensor());
    } else if (v.isTensorList()) {
      c10::List<Tensor> all;
      for (const Tensor& t : v.toTensorVector())
        all.push_back(call.result(t));
      v = all;
    } else if ((v.isBool() || v.isInt() || v.isDouble()) && name != "aten::_local_scalar_dense" && !OF_SHAPES.count(name)) {
      happened(WAIT);
    }
  }
}

Tensor empty_strided(
    c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<Device> device, std::optional<bool>) {
  const auto type = c10::scalarTypeToTypeMeta(dtype.value_or(c10::typeMetaToScalarType(c10::get_default_dtype())));
  size_t last = 0; // the furthest element
  bool none = false;
  for (size_t i = 0; i < size.size(); i++) {
    TORCH_CHECK(size[i] >= 0, "Trying to create tensor with negative dimension ", size[i], ": ", size);
    none |= size[i] == 0;
    last += (size[i] - 1) * stride[i];
  }
  const Device old = Guard().exchangeDevice(device.value_or(Device(TYPE, -1)));
  Storage storage(Storage::use_byte_size_t(), none ? 0 : (last + 1) * type.itemsize(), &device_allocator, true);
  Guard().setDevice(old);
  Tensor t = at::detail::make_tensor<TensorImpl>(std::move(storage), DispatchKeySet(DispatchKey::PrivateUse1), type);
  t.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return t;
}

Tensor empty(
    c10::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  std::vector<int64_t> stride(size.size(), 1);
  for (size_t i = size.size(); i-- > 1;)
    stride[i - 1] = stride[i] * std::max<int64_t>(size[i], 1);
  Tensor t = empty_strided(size, stride, dtype, layout, device, pin);
  if (format.has_value())
    t.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  return t;
}

Tensor& copy_(Tensor& self, const Tensor& source, bool) {
  if (self.is_same(source))
    return self;
  if (!here(self))
    happened(TO_HOST), happened(WAIT); // pageable memory: the program waits
  else
    happened(here(source) ? KERNEL : TO_DEVICE);
  Call to, from;
  at::AutoDispatchBelowADInplaceOrView below;
  to.alias(self).copy_(from.alias(source));
  return self;
}

Tensor _copy_from(const Tensor& source, const Tensor& to, bool non_blocking) {
  Tensor self = to;
  return copy_(self, source, non_blocking);
}

Tensor _copy_from_and_resize(const Tensor& source, const Tensor& to) {
  to.resize_(source.sizes());
  return _copy_from(source, to, false);
}

// Of convolutions torch asks each device for its own.
Tensor convolution(
    const Tensor& x, const Tensor& w, const std::optional<Tensor>& b, c10::IntArrayRef stride, c10::IntArrayRef padding,
    c10::IntArrayRef dilation, bool transposed, c10::IntArrayRef output_padding, int64_t groups) {
  happened(KERNEL);
  Call call;
  at::AutoDispatchBelowADInplaceOrView below;
  const std::optional<Tensor> bias = b.has_value() ? std::optional<Tensor>(call.alias(*b)) : b;
  return call.result(at::convolution(
      call.alias(x), call.alias(w), bias, stride, padding, dilation, transposed, output_padding, groups));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& g, const Tensor& x, const Tensor& w, c10::IntArrayRef stride, c10::IntArrayRef padding,
    c10::IntArrayRef dilation, bool transposed, c10::IntArrayRef output_padding, int64_t groups,
    std::array<bool, 3> mask) {
  happened(KERNEL);
  Call call;
  at::AutoDispatchBelowADInplaceOrView below;
  const int64_t outputs = transposed ? w.size(1) * groups : w.size(0);
  const auto [gx, gw, gb] = at::convolution_backward(
      call.alias(g), call.alias(x), call.alias(w), c10::IntArrayRef(outputs), stride, padding, dilation, transposed,
      output_padding, groups, mask);
  return {call.result(gx), call.result(gw), call.result(gb)};
}

Tensor& set_storage(Tensor& self, Storage source, int64_t offset, c10::IntArrayRef size, c10::IntArrayRef stride) {
  self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return self;
}

Tensor& set_whole(Tensor& self, Storage source) {
  const auto n = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, {n}, {1});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&kernel>());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  // also torch's own way to give a device without a kernel of its own what it needs counts the elements of a mask twice
  m.impl("index.Tensor", torch::CppFunction::makeFromBoxedFunction<&kernel>());
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy_);
  m.impl("_copy_from", &_copy_from);
  m.impl("_copy_from_and_resize", &_copy_from_and_resize);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Storage", &set_whole);
  m.impl("set_.source_Tensor", &set_tensor);
}
} // namespace

// ------------------------------------------------------------------ for Python
extern "C" {
void accelerator_start() {
  at::RegisterPrivateUse1HooksInterface(&hooks);
}
// Faults are announced to Python's main thread by this signal. Called again after others have set their handlers.
void accelerator_watch(int number) {
  announced = number;
  struct sigaction ours = {};
  ours.sa_sigaction = at_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  struct sigaction found;
  sigaction(SIGSEGV, &ours, &found);
  if (found.sa_sigaction != at_fault)
    before = found;
}
int64_t accelerator_count(int event) {
  return counts[event];
}
int64_t accelerator_allocated() {
  return allocated;
}
int accelerator_forbid(int events, void (*tell)(int)) {
  told = tell;
  return forbidden.exchange(events);
}
int accelerator_current() {
  return current;
}
void accelerator_set_current(int index) {
  Guard().uncheckedSetDevice({TYPE, static_cast<DeviceIndex>(index)});
}
}
