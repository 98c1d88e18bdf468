// SPDX-License-Identifier: Apache-2.0
#include "evidence/load_archive.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/compressed_text.h"
#include "base/tar_writer.h"

namespace tacet {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

const std::string kRankLog =
    "[rank3]:[W1115 20:34:27.920881362 CUDAEvent.h:57] Warning: CUDA warning: gone\n"
    "[rank3]: torch.AcceleratorError: CUDA error: an illegal memory access\n";

std::string Tar(const Files& files, bool end = true) {
  std::string out;
  TarWriter tar([&](std::string_view bytes) {
    out.append(bytes);
    return true;
  });
  for (const auto& [name, bytes] : files) tar.Add(name, bytes, 1'700'000'000);
  if (end) tar.Finish();
  return out;
}

std::string Little(uint64_t value, size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
  return out;
}

std::string Deflate(std::string_view text) {
  const std::string gzip = Gzip(text);
  return gzip.substr(10, gzip.size() - 18);  // without head and sum
}

struct ZipOptions {
  bool deflate = true, directory = true, wide = false;
  uint16_t flags = 0, method = 0;  // method: another than it is
};

std::string Zip(const Files& files, const ZipOptions& options = {}) {
  std::string out, list;
  for (const auto& [name, bytes] : files) {
    const std::string packed = options.deflate ? Deflate(bytes) : bytes;
    const uint16_t method = options.method != 0 ? options.method : options.deflate ? 8 : 0;
    const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    const uint64_t at = out.size();
    const bool behind = (options.flags & 8) != 0;
    const std::string common = Little(20, 2) + Little(options.flags, 2) + Little(method, 2) + Little(0, 4);
    out += "PK\x03\x04" + common + Little(behind ? 0 : sum, 4) + Little(behind ? 0 : packed.size(), 4) +
           Little(behind ? 0 : bytes.size(), 4) + Little(name.size(), 2) + Little(0, 2) + name + packed;
    if (behind) out += "PK\x07\x08" + Little(sum, 4) + Little(packed.size(), 4) + Little(bytes.size(), 4);
    const std::string extra =
        options.wide ? Little(1, 2) + Little(24, 2) + Little(bytes.size(), 8) + Little(packed.size(), 8) + Little(at, 8)
                     : "";
    const uint64_t wide = 0xffffffff;
    list += "PK\x01\x02" + Little(20, 2) + common + Little(sum, 4) + Little(options.wide ? wide : packed.size(), 4) +
            Little(options.wide ? wide : bytes.size(), 4) + Little(name.size(), 2) + Little(extra.size(), 2) +
            Little(0, 10) + Little(options.wide ? wide : at, 4) + name + extra;
  }
  if (!options.directory) return out;
  const uint64_t at = out.size();
  return out + list + "PK\x05\x06" + Little(0, 4) + Little(files.size(), 2) + Little(files.size(), 2) +
         Little(list.size(), 4) + Little(at, 4) + Little(0, 2);
}

std::vector<Fragment> Load(const std::string& name, const std::string& bytes, uint64_t most = uint64_t{1} << 24) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tacet_archive_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name, std::ios::binary) << bytes;
  LoadOptions options;
  options.threads = 1;
  options.max_file_bytes = most;
  auto loaded = LoadEvidence({(folder / name).string()}, options);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(loaded.ok());
  return loaded.ok() ? std::move(loaded->fragments) : std::vector<Fragment>();
}

const Fragment* At(const std::vector<Fragment>& fragments, std::string_view path) {
  const auto found = std::find_if(fragments.begin(), fragments.end(), [&](const auto& f) { return f.path == path; });
  return found == fragments.end() ? nullptr : &*found;
}

bool Says(const std::vector<Fragment>& fragments, std::string_view code) {
  return std::any_of(fragments.begin(), fragments.end(), [&](const Fragment& fragment) {
    return std::any_of(fragment.diagnostics.begin(), fragment.diagnostics.end(),
                       [&](const Diagnostic& diagnostic) { return diagnostic.code == code; });
  });
}

const Files kTwo = {{"node1/rank3.log", kRankLog}, {"node0/rank0.log", kRankLog}};

void ExpectBoth(const std::vector<Fragment>& fragments, const std::string& name) {
  ASSERT_EQ(fragments.size(), 2u) << name;
  EXPECT_EQ(fragments[0].path, name + "/node0/rank0.log");
  EXPECT_EQ(fragments[1].path, name + "/node1/rank3.log");
  for (const Fragment& fragment : fragments) {
    EXPECT_EQ(fragment.format, "torch_log") << name;
    EXPECT_FALSE(fragment.speakers.empty()) << name;
    EXPECT_TRUE(fragment.diagnostics.empty()) << name << fragment.diagnostics.front().message;
  }
}

TEST(Archive, FilesOfEveryKindAreReadAsThoseOfAFolder) {
  ExpectBoth(Load("a.tar", Tar(kTwo)), "a.tar");
  ExpectBoth(Load("a.tgz", Gzip(Tar(kTwo))), "a.tgz");
  ExpectBoth(Load("a.tar.zst", Zstd(Tar(kTwo))), "a.tar.zst");
  ExpectBoth(Load("a.zip", Zip(kTwo)), "a.zip");
  ExpectBoth(Load("stored.zip", Zip(kTwo, {.deflate = false})), "stored.zip");
  ExpectBoth(Load("wide.zip", Zip(kTwo, {.wide = true})), "wide.zip");
  ExpectBoth(Load("streamed.zip", Zip(kTwo, {.flags = 8})), "streamed.zip");
  // By content, whatever the name.
  ExpectBoth(Load("logs.log", Gzip(Tar(kTwo))), "logs.log");
}

TEST(Archive, FilesKeepTheTimeTheyWereWritten) {
  const auto fragments = Load("a.tar", Tar(kTwo));
  ASSERT_FALSE(fragments.empty());
  EXPECT_EQ(fragments[0].modified_wall_ns, 1'700'000'000'000'000'000);
}

TEST(Archive, ACutTarIsReadAsFarAsItGoes) {
  const std::string tar = Tar({{"a/rank0.log", kRankLog}, {"a/rank1.log", kRankLog + std::string(2000, 'x')}});
  const auto fragments = Load("cut.tar", tar.substr(0, 512 * 4));
  ASSERT_NE(At(fragments, "cut.tar/a/rank0.log"), nullptr);
  EXPECT_TRUE(At(fragments, "cut.tar/a/rank0.log")->diagnostics.empty());
  EXPECT_NE(At(fragments, "cut.tar/a/rank1.log"), nullptr);
  EXPECT_TRUE(Says(fragments, "archive-cut"));
}

TEST(Archive, EveryCutOfEveryKindIsSurvived) {
  for (const std::string& whole : {Tar(kTwo), Gzip(Tar(kTwo)), Zstd(Tar(kTwo)), Zip(kTwo), Zip(kTwo, {.flags = 8})})
    for (size_t size = 0; size < whole.size(); size += 37) {
      const std::string cut = whole.substr(0, size);
      std::vector<Fragment> out;
      const ArchiveKind kind = DetectArchive(cut);
      if (kind == ArchiveKind::none) continue;
      ReadArchive(
          "cut", cut, kind, {.threads = 1},
          [](const ArchivedFile& file, const LoadOptions&) {
            EXPECT_LE(file.bytes.size(), kRankLog.size());
            Fragment fragment;
            fragment.path = file.path;
            return fragment;
          },
          out);
      EXPECT_LE(out.size(), 3u);
    }
}

TEST(Archive, ADamagedHeaderCostsItsOwnFileOnly) {
  std::string tar = Tar({{"rank0.log", kRankLog}, {"rank1.log", kRankLog}, {"rank2.log", kRankLog}});
  tar[1024 + 3] ^= 0x55;  // the second name
  const auto fragments = Load("d.tar", tar);
  EXPECT_NE(At(fragments, "d.tar/rank0.log"), nullptr);
  EXPECT_EQ(At(fragments, "d.tar/rank1.log"), nullptr);
  EXPECT_NE(At(fragments, "d.tar/rank2.log"), nullptr);
  EXPECT_TRUE(Says(fragments, "archive-damaged"));
}

TEST(Archive, AZipWithoutItsListIsReadByItsHeaders) {
  const auto fragments = Load("cut.zip", Zip(kTwo, {.directory = false}));
  EXPECT_NE(At(fragments, "cut.zip/node0/rank0.log"), nullptr);
  EXPECT_NE(At(fragments, "cut.zip/node1/rank3.log"), nullptr);
  EXPECT_TRUE(Says(fragments, "archive-cut"));
}

TEST(Archive, AnEncryptedFileAndAnUnknownMethodAreTold) {
  EXPECT_TRUE(Says(Load("e.zip", Zip(kTwo, {.flags = 1})), "encrypted-member"));
  EXPECT_TRUE(Says(Load("m.zip", Zip(kTwo, {.method = 14})), "unknown-compression"));
}

TEST(Archive, NamesNeverLeadOutside) {
  EXPECT_EQ(SafeMemberName("../../etc/passwd"), "etc/passwd");
  EXPECT_EQ(SafeMemberName("/var/log/a.log"), "var/log/a.log");
  EXPECT_EQ(SafeMemberName("./a/./b\x1b[2J.log"), "a/b?[2J.log");
  EXPECT_EQ(SafeMemberName("__MACOSX/._rank0.log"), "");
  EXPECT_EQ(SafeMemberName(".git/config"), "");
  EXPECT_EQ(SafeMemberName("a/.hidden.log"), "a/.hidden.log");
  EXPECT_EQ(SafeMemberName(".."), "");
}

TEST(Archive, AnArchiveInsideAnArchiveIsOpenedOnceOnly) {
  const std::string inner = Gzip(Tar({{"rank1.log", kRankLog}}));
  EXPECT_NE(At(Load("o.tar", Tar({{"n/i.tgz", inner}})), "o.tar/n/i.tgz/rank1.log"), nullptr);
  const auto deep = Load("o.tar", Tar({{"m.zip", Zip({{"i.tgz", inner}})}, {"rank0.log", kRankLog}}));
  EXPECT_TRUE(Says(deep, "nested-archive"));
  EXPECT_NE(At(deep, "o.tar/rank0.log"), nullptr);
  EXPECT_EQ(At(deep, "o.tar/m.zip/i.tgz/rank1.log"), nullptr);
}

TEST(Archive, ABombCostsWhatTheLimitAllows) {
  const std::string blanks(256 << 10, ' ');
  const auto one = Load("b.zip", Zip({{"rank0.log", blanks}}), 1 << 16);
  EXPECT_TRUE(Says(one, "too-large"));
  Files many;
  for (int i = 0; i < 20; ++i) many.push_back({"rank" + std::to_string(i) + ".log", blanks});
  for (const std::string& bomb : {Zip(many), Zstd(Tar(many)), Gzip(Tar(many))}) {
    const auto fragments = Load("b", bomb, 1 << 16);
    EXPECT_TRUE(Says(fragments, "archive-too-large"));
    EXPECT_LT(fragments.size(), 20u);
  }
}

TEST(Archive, AFileThatWasAddedAgainCountsOnce) {
  const auto fragments = Load("r.tar", Tar({{"rank0.log", "old\n"}, {"rank0.log", kRankLog}}));
  ASSERT_EQ(fragments.size(), 1u);
  EXPECT_EQ(fragments[0].format, "torch_log");
}

TEST(Archive, ACheckpointIsNotOpened) {
  EXPECT_EQ(DetectArchive(Zip({{"model/data.pkl", "\x80\x02"}, {"model/version", "3"}})), ArchiveKind::none);
  EXPECT_EQ(DetectArchive(Zip(kTwo)), ArchiveKind::zip);
  EXPECT_EQ(DetectArchive(kRankLog + std::string(600, ' ')), ArchiveKind::none);
}

TEST(LaterDetection, AFormatBelowOtherLinesIsFound) {
  std::string text;
  while (text.size() < 200'000) text += "loading module cuda/12.4 for the user's job\n";
  EXPECT_EQ(ReadFragment("out.txt", text, {}).format, "unknown");
  std::string late = text + kRankLog + text;
  EXPECT_EQ(ReadFragment("out.txt", late, {}).format, "torch_log");
  EXPECT_EQ(ReadFragment("out.txt.gz", Gzip(late), {}).format, "torch_log");
  // At the very end of a file too long to be searched whole.
  std::string end;
  while (end.size() < (size_t{3} << 20)) end += text;
  EXPECT_EQ(ReadFragment("out.txt", end + kRankLog, {}).format, "torch_log");
}

}  // namespace
}  // namespace tacet
