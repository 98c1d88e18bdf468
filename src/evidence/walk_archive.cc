// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/decompress.h"
#include "base/tar_reader.h"
#include "base/unpack_stream.h"
#include "base/zip_reader.h"
#include "evidence/load_archive.h"

namespace tacet {
namespace {

// Logs of a large job compress a hundredfold and more in parts, but not as a whole; what grows beyond this and beyond
// eight files of the largest allowed size was made to hurt. 16,384 ranks with ten files each fit.
constexpr uint64_t kMostGrowth = 32, kMostFullFiles = 8;
constexpr size_t kMostMembers = 200'000;
// A damaged archive may have as many diagnostics as members.
constexpr size_t kMostNotes = 100;

constexpr std::string_view kRaiseLimit = "raise the limit with --max-file-mb if the file is genuine";

std::string InMebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

void NoteOn(ArchivedFile& file, std::string code, std::string message, std::string_view hint = "") {
  file.notes.push_back({DiagnosticSeverity::warning, std::move(code), std::move(message), {}, std::string(hint)});
}

// One walk: what is common to both kinds.
class ArchiveWalk {
 public:
  ArchiveWalk(std::string_view path, std::string_view bytes, const LoadOptions& options, ArchiveBudget& budget,
              const std::function<void(ArchivedFile&&)>& take)
      : path_(path), bytes_(bytes), options_(options), budget_(budget), take_(take) {
    about_.path = path;
    about_.format = "archive";
  }

  void WalkTar();
  void WalkZip();
  Fragment Finish();

 private:
  void Refuse(std::string_view name, std::string code, const std::string& why, std::string hint = "") {
    if (++refused_ > kMostNotes) return;
    about_.Note(DiagnosticSeverity::warning, std::move(code), "'" + Shown(name) + "' inside it " + why, {},
                std::move(hint));
  }
  static std::string Shown(std::string_view name) {
    std::string safe = SafeMemberName(name);
    return safe.empty() ? "a file" : safe;
  }
  // False: it is none to read.
  bool Name(std::string name, ArchivedFile* file) {
    const std::string safe = SafeMemberName(name);
    if (safe.empty()) return false;
    file->path = path_ + "/" + safe;
    file->name = std::move(name);
    return true;
  }
  void Hand(ArchivedFile&& file) {
    ++files_;
    take_(std::move(file));
  }
  void NoteBudget(bool bytes) {
    about_.Note(DiagnosticSeverity::warning, "archive-too-large",
                bytes ? "unpacks to more than is read of one archive; what came before was read"
                      : "has more than " + std::to_string(kMostMembers) + " files; what came before was read",
                {}, "unpack it and give the folder");
  }

  const std::string path_;
  const std::string_view bytes_;
  const LoadOptions& options_;
  ArchiveBudget& budget_;
  const std::function<void(ArchivedFile&&)>& take_;
  Fragment about_;
  size_t files_ = 0, links_ = 0, refused_ = 0;
};

void ArchiveWalk::WalkTar() {
  UnpackStream stream(bytes_, UnpackStream::KindOf(DetectCompression(bytes_)), budget_.bytes);
  TarReader reader([&](char* buffer, size_t size) { return stream.Read(buffer, size); }, options_.max_file_bytes,
                   TarReader::OnDamage::look_further);
  bool too_many = false, cut_inside = false;
  for (TarMember member; reader.Next(&member);) {
    if (budget_.members == 0) {
      too_many = true;
      break;
    }
    --budget_.members;
    cut_inside = member.cut;
    if (member.sparse) {
      Refuse(member.name, "sparse-member", "is stored with holes (tar --sparse), and is not read",
             "pack it without --sparse, or unpack it first");
      continue;
    }
    if (!member.plain) {
      links_ += member.folder ? 0 : 1;
      continue;
    }
    ArchivedFile file;
    if (!Name(std::move(member.name), &file)) continue;
    file.bytes = std::move(member.bytes);
    if (member.modified_s > 0 && member.modified_s < INT64_MAX / 1'000'000'000)
      file.modified_wall_ns = member.modified_s * 1'000'000'000;
    file.cut = member.cut || file.bytes.size() < member.size;
    if (member.cut && !stream.limited())
      NoteOn(file, "archive-cut", "the archive ends inside this file; what came before was read");
    else if (file.cut)
      NoteOn(file, "too-large",
             "is larger than " + InMebibytes(options_.max_file_bytes) + "; only the beginning was read", kRaiseLimit);
    Hand(std::move(file));
  }
  budget_.bytes -= std::min(budget_.bytes, stream.output_bytes());
  if (reader.damaged() > 0)
    about_.Note(DiagnosticSeverity::warning, "archive-damaged",
                "is damaged in " + std::to_string(reader.damaged()) + (reader.damaged() == 1 ? " place" : " places") +
                    "; the files there are missing");
  if (too_many || stream.limited()) {
    NoteBudget(!too_many);
  } else if (stream.corrupt()) {
    about_.Note(DiagnosticSeverity::warning, "archive-damaged",
                "the compressed data is damaged; what came before was read");
  } else if (stream.cut() || cut_inside || (!reader.complete() && reader.damaged() == 0)) {
    about_.Note(DiagnosticSeverity::warning, "archive-cut", "the archive ends early; what came before was read", {},
                "check whether its copy was interrupted");
  }
}

void ArchiveWalk::WalkZip() {
  const ZipList list = ListZip(bytes_, budget_.members);
  budget_.members -= std::min(budget_.members, list.members.size());
  bool used_up = false;
  for (const ZipMember& member : list.members) {
    if (member.name.empty() || member.name.ends_with('/')) continue;
    ArchivedFile file;
    if (!Name(member.name, &file)) continue;
    if (member.encrypted) {
      Refuse(member.name, "encrypted-member", "is encrypted, and is not read", "unpack it with its password first");
      continue;
    }
    if (member.lost) {
      Refuse(member.name, "archive-damaged", "is not where the archive's list says, and is not read");
      continue;
    }
    used_up = budget_.bytes == 0 && !member.packed.empty();
    if (used_up) break;
    const uint64_t most = std::min(options_.max_file_bytes, budget_.bytes);
    ZipContent content = UnpackZipMember(member, most);
    if (!content.known_method) {
      Refuse(member.name, "unknown-compression",
             "is compressed by method " + std::to_string(member.method) + ", which is not read", "unpack it first");
      continue;
    }
    budget_.bytes -= content.bytes.size();
    file.bytes = std::move(content.bytes);
    if (member.modified_s > 0) file.modified_wall_ns = member.modified_s * 1'000'000'000;
    file.cut = content.cut || content.corrupt || content.limited;
    if (content.cut) NoteOn(file, "archive-cut", "the archive ends inside this file; what came before was read");
    if (content.corrupt) NoteOn(file, "compressed-corrupt", "its data inside the archive is damaged");
    if (content.limited)
      NoteOn(file, "too-large", "is larger than " + InMebibytes(most) + "; only the beginning was read", kRaiseLimit);
    Hand(std::move(file));
  }
  if (list.cut)
    about_.Note(DiagnosticSeverity::warning, "archive-cut",
                list.members.empty()
                    ? "the archive ends early: its list of files is missing, and nothing in it was read"
                    : "the archive ends early: its list of files is missing; what came before was read",
                {}, "check whether its copy was interrupted");
  if (used_up || list.limited) NoteBudget(used_up);
}

Fragment ArchiveWalk::Finish() {
  if (links_ > 0)
    about_.Note(DiagnosticSeverity::note, "links",
                std::to_string(links_) +
                    (links_ == 1 ? " link or device inside it was" : " links or devices inside it were") +
                    " not followed");
  if (refused_ > kMostNotes)
    about_.Note(DiagnosticSeverity::warning, "archive-damaged",
                std::to_string(refused_ - kMostNotes) + " more files inside it were not read");
  if (files_ == 0 && about_.diagnostics.empty())
    about_.Note(DiagnosticSeverity::note, "empty-archive", "is an archive without files");
  return std::move(about_);
}

}  // namespace

ArchiveKind DetectArchive(std::string_view bytes) {
  constexpr size_t kHeader = 512;
  if (LooksLikeZip(bytes)) {
    // torch.save: "archive/data.pkl" comes first, under whatever name the checkpoint has.
    const std::string_view head = bytes.substr(0, kHeader);
    return head.find("/data.pkl") == std::string_view::npos ? ArchiveKind::zip : ArchiveKind::none;
  }
  const Compression compression = DetectCompression(bytes);
  if (compression == Compression::none) return LooksLikeTar(bytes) ? ArchiveKind::tar : ArchiveKind::none;
  std::array<char, kHeader> header;
  UnpackStream stream(bytes, UnpackStream::KindOf(compression), kHeader);
  size_t got = 0;
  while (const size_t part = stream.Read(header.data() + got, header.size() - got)) got += part;
  return LooksLikeTar({header.data(), got}) ? ArchiveKind::tar : ArchiveKind::none;
}

ArchiveBudget BudgetFor(std::string_view archive, const LoadOptions& options) {
  const uint64_t full_files =
      options.max_file_bytes > UINT64_MAX / kMostFullFiles ? UINT64_MAX : options.max_file_bytes * kMostFullFiles;
  return {std::max<uint64_t>(full_files, archive.size() * kMostGrowth), kMostMembers};
}

std::string SafeMemberName(std::string_view name) {
  std::string safe;
  while (!name.empty()) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    const bool last = slash == std::string_view::npos;
    name.remove_prefix(last ? name.size() : slash + 1);
    if (part.empty() || part == "." || part == "..") continue;
    if (last ? part.starts_with("._") : part.starts_with(".") || part == "__MACOSX") return "";
    if (!safe.empty()) safe += '/';
    for (const char c : part) safe += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  }
  return safe;
}

Fragment WalkArchive(std::string_view path, std::string_view bytes, ArchiveKind kind, const LoadOptions& options,
                     ArchiveBudget& budget, const std::function<void(ArchivedFile&&)>& take) {
  ArchiveWalk walk(path, bytes, options, budget, take);
  if (kind == ArchiveKind::zip)
    walk.WalkZip();
  else
    walk.WalkTar();
  return walk.Finish();
}

}  // namespace tacet
