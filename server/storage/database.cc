#include "server/storage/database.h"

#include <cerrno>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "sqlite3.h"

namespace autoloco::server {
namespace {

// For an operator's reading of the file beside a running server: neither holds it for longer than one transaction.
constexpr int kBusyTimeoutMilliseconds = 5000;

constexpr absl::string_view kNotANumber = "nan";

absl::Status SqliteError(const std::string& path, int code, absl::string_view detail) {
  const std::string message = absl::StrCat("state database ", path, ": ", detail);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT: return absl::DataLossError(message);
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return absl::ResourceExhaustedError(message);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN: return absl::PermissionDeniedError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL: return absl::UnavailableError(message);
    default: return absl::InternalError(message);
  }
}

absl::Status SqliteError(const std::string& path, sqlite3* handle) {
  return SqliteError(path, sqlite3_extended_errcode(handle), sqlite3_errmsg(handle));
}

}  // namespace

void Statement::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
void Database::Closer::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

void Statement::Check(int code) {
  if (code != SQLITE_OK && status_.ok()) status_ = SqliteError(path_, sqlite3_db_handle(statement_.get()));
}

Statement& Statement::Bind(absl::string_view text) {
  Check(sqlite3_bind_text64(statement_.get(), ++parameter_, text.data() == nullptr ? "" : text.data(), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::Bind(double number) {
  if (std::isnan(number)) return Bind(kNotANumber);
  Check(sqlite3_bind_double(statement_.get(), ++parameter_, number));
  return *this;
}

Statement& Statement::Bind(const std::optional<double>& number) {
  if (number) return Bind(*number);
  Check(sqlite3_bind_null(statement_.get(), ++parameter_));
  return *this;
}

Statement& Statement::BindInteger(std::int64_t number) {
  Check(sqlite3_bind_int64(statement_.get(), ++parameter_, number));
  return *this;
}

absl::Status Statement::Run() {
  AUTOLOCO_ASSIGN_OR_RETURN(const bool row, Step());
  Reset();
  if (row) return absl::InternalError(absl::StrCat("state database ", path_, ": a statement gave rows unasked"));
  return absl::OkStatus();
}

absl::StatusOr<bool> Statement::Step() {
  column_ = -1;
  if (status_.ok()) {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) status_ = SqliteError(path_, sqlite3_db_handle(statement_.get()));
  }
  const absl::Status status = status_;
  Reset();
  if (!status.ok()) return status;
  return false;
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());  // repeats the error of the step, which is known
  sqlite3_clear_bindings(statement_.get());
  parameter_ = 0;
  status_ = absl::OkStatus();
}

bool Statement::NextIs(int type, const char* want) {
  ++column_;
  if (sqlite3_column_type(statement_.get(), column_) == type) return true;
  Refuse(want);
  return false;
}

void Statement::Refuse(const char* want) {
  if (!status_.ok()) return;
  const char* const name = sqlite3_column_name(statement_.get(), column_);
  status_ = absl::DataLossError(
      absl::StrCat("state database ", path_, ": ", name == nullptr ? "column" : name, ": want ", want));
}

void Statement::Read(std::string* value) {
  if (!NextIs(SQLITE_TEXT, "text")) return;
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column_));
  value->assign(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column_)));
}

void Statement::Read(double* value) {
  const int type = sqlite3_column_type(statement_.get(), column_ + 1);
  if (type == SQLITE_TEXT) {
    std::string text;
    Read(&text);
    if (text == kNotANumber) {
      *value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    --column_;
  } else if (type == SQLITE_INTEGER) {  // a column that has no type of its own
    *value = static_cast<double>(sqlite3_column_int64(statement_.get(), ++column_));
    return;
  }
  if (NextIs(SQLITE_FLOAT, "a number")) *value = sqlite3_column_double(statement_.get(), column_);
}

void Statement::Read(std::optional<double>* value) {
  if (sqlite3_column_type(statement_.get(), column_ + 1) == SQLITE_NULL) {
    ++column_;
    value->reset();
    return;
  }
  double number = 0;
  Read(&number);
  *value = number;
}

void Statement::Read(bool* value) {
  std::uint64_t number = *value ? 1 : 0;
  Read(&number);
  *value = number != 0;
}

void Statement::Read(std::uint32_t* value) {
  std::uint64_t number = *value;
  Read(&number);
  if (number > std::numeric_limits<std::uint32_t>::max()) return Refuse("a whole number below 2^32");
  *value = static_cast<std::uint32_t>(number);
}

void Statement::Read(std::uint64_t* value) {
  if (!NextIs(SQLITE_INTEGER, "a whole number")) return;
  *value = static_cast<std::uint64_t>(sqlite3_column_int64(statement_.get(), column_));
}

absl::StatusOr<Database> Database::Open(const std::string& path, Mode mode, const Schema& schema) {
  const int flags = mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(handle, path);
  if (code != SQLITE_OK) {
    if (handle == nullptr) return SqliteError(path, code, sqlite3_errstr(code));
    if (mode == Mode::kReadOnly && code == SQLITE_CANTOPEN && sqlite3_system_errno(handle) == ENOENT) {
      return absl::NotFoundError(absl::StrCat("there is no state database ", path));
    }
    return SqliteError(path, handle);
  }
  AUTOLOCO_RETURN_IF_ERROR(database.Configure(mode));
  AUTOLOCO_RETURN_IF_ERROR(database.CheckWhole());
  AUTOLOCO_RETURN_IF_ERROR(database.CheckSchema(mode, schema));
  return database;
}

absl::Status Database::Configure(Mode mode) {
  sqlite3_extended_result_codes(handle_.get(), 1);
  sqlite3_busy_timeout(handle_.get(), kBusyTimeoutMilliseconds);
  if (mode == Mode::kReadOnly) return absl::OkStatus();
  AUTOLOCO_ASSIGN_OR_RETURN(Statement journal, Prepare("PRAGMA journal_mode = WAL"));
  AUTOLOCO_RETURN_IF_ERROR(journal.Step().status());
  std::string journal_mode;
  journal.Read(&journal_mode);
  if (journal_mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("state database ", path_, ": the file system allows no write-ahead log, only ", journal_mode));
  }
  return Execute("PRAGMA synchronous = FULL");
}

absl::Status Database::CheckWhole() {
  AUTOLOCO_ASSIGN_OR_RETURN(Statement check, Prepare("PRAGMA quick_check(1)"));
  AUTOLOCO_RETURN_IF_ERROR(check.Step().status());
  std::string verdict;
  check.Read(&verdict);
  AUTOLOCO_RETURN_IF_ERROR(check.status());
  if (verdict == "ok") return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("state database ", path_, " is damaged: ", verdict));
}

absl::Status Database::CheckSchema(Mode mode, const Schema& schema) {
  AUTOLOCO_ASSIGN_OR_RETURN(Statement tables, Prepare("SELECT count(*) FROM sqlite_master"));
  AUTOLOCO_RETURN_IF_ERROR(tables.Step().status());
  std::uint64_t count = 0;
  tables.Read(&count);
  AUTOLOCO_RETURN_IF_ERROR(tables.Step().status());
  if (count == 0) {
    if (mode == Mode::kReadOnly) return absl::NotFoundError(absl::StrCat("state database ", path_, " is empty"));
    AUTOLOCO_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(this));
    AUTOLOCO_RETURN_IF_ERROR(Execute("CREATE TABLE schema (version INTEGER NOT NULL)"));
    AUTOLOCO_RETURN_IF_ERROR(Execute(schema.sql));
    AUTOLOCO_ASSIGN_OR_RETURN(Statement insert, Prepare("INSERT INTO schema VALUES (?)"));
    AUTOLOCO_RETURN_IF_ERROR(insert.Bind(schema.version).Run());
    return transaction.Commit();
  }
  std::uint64_t version = 0;
  absl::StatusOr<Statement> select = Prepare("SELECT version FROM schema");
  if (!select.ok() || !select->Step().value_or(false)) {
    return absl::DataLossError(
        absl::StrCat("state database ", path_, " says no schema version: it is of another kind"));
  }
  select->Read(&version);
  AUTOLOCO_RETURN_IF_ERROR(select->status());
  if (version == schema.version) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("state database ", path_, " has schema version ", version,
                                                    ", this program knows ", schema.version,
                                                    version > schema.version ? ": it was written by a newer one" : ""));
}

absl::Status Database::Execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return absl::OkStatus();
  return SqliteError(path_, handle_.get());
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK) {
    return SqliteError(path_, handle_.get());
  }
  return Statement(statement, path_);
}

absl::StatusOr<Transaction> Transaction::Begin(Database* database) {
  AUTOLOCO_RETURN_IF_ERROR(database->Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ == nullptr) return;
  // Fails where the error that led here has already taken everything back.
  const absl::Status status = database_->Execute("ROLLBACK");
  if (!status.ok() && LogEnabled(LogLevel::kDebug)) {
    Log(LogLevel::kDebug, "rollback").Add("reason", std::string(status.message()));
  }
}

absl::Status Transaction::Commit() {
  AUTOLOCO_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace autoloco::server
