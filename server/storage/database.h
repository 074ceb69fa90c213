// SQLite as the state database needs it: one connection, write-ahead log, every commit on the disk before it returns,
// errors that name the file.
#ifndef AUTOLOCO_SERVER_STORAGE_DATABASE_H_
#define AUTOLOCO_SERVER_STORAGE_DATABASE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace autoloco::server {

// One SQL statement with its parameters and its rows. Movable; not thread-safe; must not outlive its database.
class Statement {
 public:
  Statement(Statement&& other) noexcept = default;
  Statement& operator=(Statement&& other) noexcept = default;

  // The next parameter, from the first question mark on. A NaN is stored as the text "nan", a missing number as NULL.
  Statement& Bind(absl::string_view text);
  Statement& Bind(const char* text) { return Bind(absl::string_view(text)); }
  Statement& Bind(const std::string& text) { return Bind(absl::string_view(text)); }
  Statement& Bind(double number);
  Statement& Bind(const std::optional<double>& number);
  // The full range of 64 bits: above 2^63 the database shows it as a negative number.
  template <typename Integer>
  requires std::is_integral_v<Integer> Statement& Bind(Integer number) {
    return BindInteger(static_cast<std::int64_t>(number));
  }

  // Runs a statement without rows, then takes new parameters.
  absl::Status Run();
  // Moves to the next row: false after the last one, when new parameters may be bound.
  absl::StatusOr<bool> Step();

  // The next column of the row, from the first one on. A value of another type, or one that does not fit, is DATA_LOSS
  // naming the column in status(), and leaves `value` as it was.
  void Read(std::string* value);
  void Read(double* value);
  void Read(std::optional<double>* value);
  void Read(bool* value);
  void Read(std::uint32_t* value);
  void Read(std::uint64_t* value);
  // The first problem of binding or reading; Run and Step return it as well.
  const absl::Status& status() const { return status_; }

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };

  Statement(sqlite3_stmt* statement, std::string path) : statement_(statement), path_(std::move(path)) {}
  Statement& BindInteger(std::int64_t number);
  bool NextIs(int type, const char* want);  // otherwise notes the problem
  void Refuse(const char* want);
  void Check(int code);
  void Reset();

  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  std::string path_;
  int parameter_ = 0;  // bound so far
  int column_ = -1;    // read last
  absl::Status status_;
};

// Movable; not thread-safe.
//
// Status codes of everything here: DATA_LOSS the file is damaged or no database, RESOURCE_EXHAUSTED disk full,
// PERMISSION_DENIED not writable, UNAVAILABLE the disk failed, or another process holds the file for longer
// than 5 s.
class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };
  // What the file holds. A released schema is never changed: a change is another version.
  struct Schema {
    std::uint64_t version = 0;
    const char* sql = nullptr;  // creates the tables of an empty database
  };

  // Opens `path`, in kReadWrite makes it where it is missing, and looks it through for damage. Besides the above
  // NOT_FOUND (kReadOnly) and FAILED_PRECONDITION: it has another schema version.
  static absl::StatusOr<Database> Open(const std::string& path, Mode mode, const Schema& schema);

  // Runs SQL without parameters and rows.
  absl::Status Execute(const char* sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);

  const std::string& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* handle) const;
  };

  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  absl::Status Configure(Mode mode);
  absl::Status CheckWhole();
  absl::Status CheckSchema(Mode mode, const Schema& schema);

  std::unique_ptr<sqlite3, Closer> handle_;
  std::string path_;
};

// Everything between construction and Commit happens, or none of it.
class Transaction {
 public:
  // `database` must outlive the transaction and have no other one.
  static absl::StatusOr<Transaction> Begin(Database* database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();  // takes back what was not committed

  // Durable when OK. On an error nothing of it has happened.
  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace autoloco::server

#endif  // AUTOLOCO_SERVER_STORAGE_DATABASE_H_
