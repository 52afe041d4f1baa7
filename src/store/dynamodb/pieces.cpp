#include "store/dynamodb/pieces.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "store/dynamodb/dynamodb_limits.hpp"
#include "store/dynamodb/query.hpp"

#include <algorithm>
#include <map>

namespace idem::dynamodb {
namespace {

constexpr std::size_t piece_version_bytes = std::tuple_size_v<RowVersion>;
constexpr std::size_t ref_bytes = piece_version_bytes + sizeof(std::uint16_t);
constexpr std::size_t id_bytes = 16;

std::string_view pieces_attribute(char kind) {
  if (kind == 'a') return attribute::answer_pieces;
  return kind == 'q' ? attribute::request_pieces : attribute::evidence_pieces;
}

}  // namespace

std::string to_bytes(const std::vector<PieceRef>& refs) {
  std::string out;
  for (const PieceRef& ref : refs) {
    const std::size_t before = out.size();
    out += ref.version;
    out.resize(before + ref_bytes);
    ByteWriter(out.data() + before + piece_version_bytes).number(ref.count);
  }
  return out;
}

std::vector<PieceRef> parse_refs(std::string_view bytes) {
  std::vector<PieceRef> refs;
  for (; bytes.size() >= ref_bytes; bytes.remove_prefix(ref_bytes)) {
    const auto count = ByteReader(bytes.substr(piece_version_bytes)).number<std::uint16_t>();
    refs.push_back({std::string(bytes.substr(0, piece_version_bytes)), count});
  }
  return refs;
}

Task<std::expected<PieceRef, NoReply>> Pieces::write(RecordId id, RowVersion version, char kind,
                                                     std::string bytes, StoreTime now) {
  PieceRef ref{std::string(bytes_of(version)), 0};
  std::vector<Question> questions;
  for (std::size_t at = 0; at < bytes.size() || at == 0; at += limits::dynamodb_piece_bytes) {
    Update put(piece_key(id, ref.version, kind, ref.count++));
    put.set(attribute::value, Bytes{bytes.substr(at, limits::dynamodb_piece_bytes)})
        .set(attribute::written_at, now.time_since_epoch().count());
    questions.push_back({"UpdateItem", put.to_request(client_.table())});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  for (const ReplyResult& reply : all) {
    // Pieces alone change no record: the call may be repeated without a doubt.
    if (!reply) {
      const bool is_unstorable = reply.error().code == StoreError::Code::unstorable;
      const auto code =
          is_unstorable ? StoreError::Code::unstorable : StoreError::Code::unavailable;
      co_return std::unexpected(NoReply{code, reply.error().why});
    }
  }
  co_return ref;
}

Task<std::expected<std::optional<std::string>, NoReply>> Pieces::read(RecordId id, PieceRef ref,
                                                                      char kind) {
  std::vector<Question> questions;
  questions.reserve(ref.count);
  for (std::size_t i = 0; i < ref.count; ++i) {
    questions.push_back(client_.reading(piece_key(id, ref.version, kind, i)));
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  std::string whole;
  for (const ReplyResult& reply : all) {
    if (!reply) co_return std::unexpected(reply.error());
    const json::Value* const found = reply->body.find("Item");
    if (found == nullptr) co_return std::nullopt;
    whole += Item::parse(*found).bytes(attribute::value);
  }
  co_return whole;
}

Task<void> Pieces::remove(RecordId id, PieceRef ref, char kind) {
  std::vector<Question> questions;
  for (std::size_t i = 0; i < ref.count; ++i) {
    const Update piece(piece_key(id, ref.version, kind, i));
    questions.push_back({"DeleteItem", piece.to_request(client_.table())});
  }
  auto asking = client_.ask_all(std::move(questions));
  (void)co_await std::move(asking);
}

Task<bool> Pieces::is_named(const Key& piece) {
  const auto id = to_id(std::string_view(piece.sort).substr(0, id_bytes));
  if (!id || piece.sort.size() <= id_bytes + piece_version_bytes) co_return true;  // None of ours.
  auto reading = client_.read(record_key(*id));
  const auto item = co_await std::move(reading);
  if (!item) co_return true;
  if (!*item) co_return false;
  const char kind = piece.sort[id_bytes + piece_version_bytes];
  const auto refs = parse_refs((*item)->bytes(pieces_attribute(kind)));
  co_return std::ranges::any_of(refs, [&](const PieceRef& ref) {
    return piece.sort.compare(id_bytes, piece_version_bytes, ref.version) == 0;
  });
}

Task<void> Pieces::sweep(std::size_t bucket, StoreTime now) {
  Query query(client_.table());
  query.project("#s, #m").where("#p = :p");
  query.name("#p", attribute::partition).name("#s", attribute::sort);
  query.name("#m", attribute::written_at).value(":p", pieces_partition(bucket));
  Task<ReplyResult> asking = client_.ask(query.finish());
  const ReplyResult reply = co_await std::move(asking);
  if (!reply) co_return;
  const Page page = parse_page(*reply);
  const StoreTime before = now - limits::dynamodb_orphan_age;
  for (const Item& item : page.items) {
    const auto written = item.number(attribute::written_at);
    if (!written || StoreTime(Millis(*written)) > before) continue;
    const Key key{pieces_partition(bucket), std::string(item.bytes(attribute::sort))};
    Task<bool> looking = is_named(key);
    const bool is_kept = co_await std::move(looking);
    if (is_kept) continue;
    Task<ReplyResult> erasing = client_.erase(Update(key));
    (void)co_await std::move(erasing);
  }
}

}  // namespace idem::dynamodb
