// Stands for the protobuf that a solver brought along, of another version: its parser is no use to us. Loaded globally,
// it is what a library finds first that looks in the global scope.
namespace google::protobuf {
namespace io {
class ZeroCopyInputStream;
}
class MessageLite {
 public:
  bool ParseFromZeroCopyStream(io::ZeroCopyInputStream* input);
};

}  // namespace google::protobuf

extern "C" int jitc_clashing_calls;
int jitc_clashing_calls = 0;

bool google::protobuf::MessageLite::ParseFromZeroCopyStream(io::ZeroCopyInputStream*) {
  ++jitc_clashing_calls;
  return false;
}
