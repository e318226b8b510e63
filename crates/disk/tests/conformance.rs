//! Whatever is done through the mount does what it does on the real directory: the same answers, the same files.
//!
//! Each row of the tables is carried out twice, in a directory on the mount and in a plain one, and the answers and then the
//! two trees are compared.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod tree;

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
        },
    },
    path::Path,
    process::Command,
};

use common::{Mounted, errno};
use tree::picture;

type Row = (&'static str, fn(&Path) -> Vec<Result<i64, i32>>);

/// The result of a system call.
fn answer(result: impl TryInto<i64>) -> Result<i64, i32> {
    match result.try_into().unwrap_or(i64::MAX) {
        ..0 => Err(std::io::Error::last_os_error().raw_os_error().unwrap()),
        value => Ok(value),
    }
}

fn done<T>(result: std::io::Result<T>) -> Result<i64, i32> {
    errno(result).map(|_| 0)
}

fn name(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn create(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn rename(from: &Path, to: &Path, flags: u32) -> Result<i64, i32> {
    let (from, to) = (name(from), name(to));
    // SAFETY: both names end with a zero byte.
    answer(unsafe {
        libc::syscall(libc::SYS_renameat2, libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), flags)
    })
}

const ROWS: &[Row] = &[
    ("create, exclusively and not", |d| {
        let exclusive = |n: &str| done(OpenOptions::new().write(true).create_new(true).open(d.join(n)));
        vec![exclusive("a"), exclusive("a"), done(File::create(d.join("a"))), done(File::open(d.join("none")))]
    }),
    ("names that are too long, and as long as may be", |d| {
        vec![done(File::create(d.join("n".repeat(255)))), done(File::create(d.join("n".repeat(256))))]
    }),
    ("write, overwrite, read across the end", |d| {
        let file = create(&d.join("a"));
        let mut buffer = [0; 100];
        let written = [file.write_at(b"0123456789", 0), file.write_at(b"abc", 5), file.write_at(b"", 50)];
        let read = [file.read_at(&mut buffer, 3), file.read_at(&mut buffer, 10), file.read_at(&mut buffer, 1000)];
        written.into_iter().chain(read).map(|n| Ok(n.unwrap() as i64)).collect()
    }),
    ("a file with holes", |d| {
        let file = create(&d.join("a"));
        file.write_all_at(b"end", 10 << 20).unwrap();
        let mut buffer = vec![1; 1 << 20];
        file.read_exact_at(&mut buffer, 5 << 20).unwrap();
        assert!(buffer.iter().all(|byte| *byte == 0));
        let seek = |offset, whence| {
            // SAFETY: no memory is involved.
            answer(unsafe { libc::lseek(file.as_raw_fd(), offset, whence) })
        };
        file.sync_all().unwrap();
        vec![
            seek(0, libc::SEEK_DATA),
            seek(0, libc::SEEK_HOLE),
            seek(10 << 20, libc::SEEK_HOLE),
            seek(11 << 20, libc::SEEK_DATA),
            Ok(i64::from(file.metadata().unwrap().blocks() < 1000)),
        ]
    }),
    ("truncate, by handle, by name and when opened", |d| {
        let path = d.join("a");
        fs::write(&path, [7; 10_000]).unwrap();
        let length = || Ok(fs::metadata(&path).unwrap().len() as i64);
        let mut all = vec![done(create(&path).set_len(5000)), length()];
        // SAFETY: the name ends with a zero byte.
        all.push(answer(unsafe { libc::truncate(name(&path).as_ptr(), 6000) }));
        all.extend([length(), Ok(fs::read(&path).unwrap().iter().map(|byte| i64::from(*byte)).sum())]);
        all.extend([done(File::create(&path)), length()]);
        all.push(answer(unsafe { libc::truncate(name(d).as_ptr(), 0) }));
        all
    }),
    ("append, also from two writers", |d| {
        let append = || OpenOptions::new().append(true).create(true).open(d.join("log")).unwrap();
        let (mut one, mut two) = (append(), append());
        for n in 0..100 {
            writeln!(one, "one {n}").unwrap();
            writeln!(two, "two {n}").unwrap();
        }
        vec![Ok(one.stream_position().unwrap() as i64), Ok(two.stream_position().unwrap() as i64)]
    }),
    ("fallocate, and holes punched", |d| {
        let file = create(&d.join("a"));
        file.write_all_at(&[1; 100_000], 0).unwrap();
        let allocate = |mode, offset, length| {
            // SAFETY: no memory is involved.
            answer(unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) })
        };
        let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        vec![
            allocate(0, 0, 200_000),
            allocate(libc::FALLOC_FL_KEEP_SIZE, 0, 300_000),
            allocate(punch, 8192, 8192),
            allocate(0, 0, 0),
            Ok(file.metadata().unwrap().len() as i64),
        ]
    }),
    ("copy_file_range", |d| {
        let (from, to) = (create(&d.join("from")), create(&d.join("to")));
        from.write_all_at(&[9; 50_000], 0).unwrap();
        let (mut at, mut into) = (1000, 500);
        // SAFETY: both offsets are valid to read and write.
        let copied = unsafe { libc::copy_file_range(from.as_raw_fd(), &mut at, to.as_raw_fd(), &mut into, 100_000, 0) };
        vec![answer(copied), Ok(at), Ok(into)]
    }),
    ("directories", |d| {
        let at = |n: &str| d.join(n);
        vec![
            done(fs::create_dir(at("a"))),
            done(fs::create_dir(at("a"))),
            done(fs::create_dir(at("none/b"))),
            done(fs::create_dir_all(at("a/b/c"))),
            done(fs::remove_dir(at("a"))),
            done(fs::remove_dir(at("a/b/c"))),
            done(fs::remove_file(at("a/b"))),
            done(File::open(at("a")).unwrap().sync_all()),
            done(fs::read_dir(at("none"))),
            done(File::create(at("a"))),
        ]
    }),
    ("a directory of 5,000 names, read while it is changed", |d| {
        for n in 0..5000 {
            File::create(d.join(format!("name-{n}"))).unwrap();
        }
        let removed = fs::read_dir(d).unwrap().filter(|entry| fs::remove_file(entry.as_ref().unwrap().path()).is_ok());
        vec![Ok(removed.count() as i64), Ok(fs::read_dir(d).unwrap().count() as i64)]
    }),
    ("rename, over files, directories and with flags", |d| {
        let at = |n: &str| d.join(n);
        fs::write(at("a"), "a").unwrap();
        fs::write(at("b"), "b").unwrap();
        fs::create_dir_all(at("dir/sub")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        vec![
            rename(&at("a"), &at("b"), libc::RENAME_NOREPLACE),
            rename(&at("a"), &at("b"), libc::RENAME_EXCHANGE),
            rename(&at("a"), &at("none"), libc::RENAME_EXCHANGE),
            rename(&at("a"), &at("b"), 0),
            rename(&at("b"), &at("dir"), 0),
            rename(&at("dir"), &at("b"), 0),
            rename(&at("empty"), &at("dir"), 0),
            rename(&at("dir"), &at("empty"), 0),
            rename(&at("empty"), &at("empty/sub/self"), 0),
            rename(&at("none"), &at("x"), 0),
            rename(&at("b"), &at("empty/sub/b"), 0),
        ]
    }),
    ("a file renamed over, unlinked, and still open", |d| {
        let at = |n: &str| d.join(n);
        fs::write(at("old"), "old").unwrap();
        fs::write(at("new"), "new").unwrap();
        let mut open = OpenOptions::new().read(true).write(true).open(at("old")).unwrap();
        fs::rename(at("new"), at("old")).unwrap();
        let mut text = String::new();
        open.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs::read_to_string(at("old")).unwrap().as_str()), ("old", "new"));
        let other = create(&at("gone"));
        fs::remove_file(at("gone")).unwrap();
        other.write_all_at(b"still here", 0).unwrap();
        let mut buffer = [0; 10];
        other.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!(&buffer, b"still here");
        let stat = other.metadata().unwrap();
        vec![
            done(open.write_all_at(b"more", 3)),
            done(open.sync_all()),
            done(other.set_len(4)),
            done(other.set_permissions(fs::Permissions::from_mode(0o600))),
            Ok(stat.nlink() as i64),
            Ok(stat.len() as i64),
            Ok(other.metadata().unwrap().len() as i64),
        ]
    }),
    ("hard links are one file", |d| {
        let at = |n: &str| d.join(n);
        fs::write(at("a"), "one").unwrap();
        let linked = vec![
            done(fs::hard_link(at("a"), at("b"))),
            done(fs::hard_link(at("a"), at("b"))),
            done(fs::hard_link(at("none"), at("c"))),
            done(fs::hard_link(d, at("c"))),
        ];
        let same = |n: &str| fs::metadata(at(n)).unwrap().ino();
        assert_eq!(same("a"), same("b"));
        create(&at("b")).write_all_at(b"TWO more", 0).unwrap();
        assert_eq!(fs::read_to_string(at("a")).unwrap(), "TWO more");
        assert_eq!(fs::metadata(at("a")).unwrap().nlink(), 2);
        fs::remove_file(at("a")).unwrap();
        assert_eq!(fs::metadata(at("b")).unwrap().nlink(), 1);
        linked
    }),
    ("symbolic links", |d| {
        let at = |n: &str| d.join(n);
        fs::write(at("file"), "text").unwrap();
        let all = vec![
            done(symlink("file", at("link"))),
            done(symlink("file", at("link"))),
            done(symlink("nowhere", at("broken"))),
            done(symlink("loop", at("loop"))),
            done(symlink("x".repeat(4095), at("long"))),
            done(fs::read(at("link"))),
            done(fs::read(at("broken"))),
            done(fs::read(at("loop"))),
            done(fs::hard_link(at("link"), at("second"))),
        ];
        assert_eq!(fs::read_link(at("link")).unwrap(), Path::new("file"));
        all
    }),
    ("modes, times, and the mask of who creates", |d| {
        let at = |n: &str| d.join(n);
        let script = "umask 027; touch a; mkdir b; umask 0; mkfifo c; touch d; mkdir -m 2775 e; touch e/f; mkdir e/g;
            chmod 4755 a; chmod 1777 b; touch -d @1234567890.123456789 d; touch -m -d @1 b";
        let status = Command::new("sh").args(["-c", script]).current_dir(d).status().unwrap();
        let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o4755).open(at("suid"));
        vec![Ok(status.code().unwrap().into()), done(open), Ok(fs::metadata(at("d")).unwrap().mtime_nsec())]
    }),
    ("owners, and what a change of owner takes away", |d| {
        let at = |n: &str| d.join(n);
        fs::write(at("a"), "").unwrap();
        fs::set_permissions(at("a"), fs::Permissions::from_mode(0o6755)).unwrap();
        let chown = |n: &str, uid, gid| done(std::os::unix::fs::lchown(at(n), uid, gid));
        symlink("a", at("link")).unwrap();
        vec![chown("a", Some(1234), Some(99)), chown("a", None, Some(4321)), chown("link", Some(7), None)]
    }),
    ("locks", |d| {
        let (one, two) = (create(&d.join("a")), create(&d.join("a")));
        // SAFETY: no memory is involved.
        let flock = |file: &File, how| answer(unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) });
        let ofd = |file: &File, kind: i32, start| {
            // SAFETY: a lock of zeroes is a valid one.
            let mut lock: libc::flock = unsafe { std::mem::zeroed() };
            (lock.l_type, lock.l_start, lock.l_len) = (kind as i16, start, 10);
            // SAFETY: `lock` is valid to read.
            answer(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) })
        };
        vec![
            flock(&one, libc::LOCK_EX),
            flock(&two, libc::LOCK_SH),
            flock(&one, libc::LOCK_UN),
            flock(&two, libc::LOCK_SH),
            ofd(&one, libc::F_WRLCK, 0),
            ofd(&two, libc::F_WRLCK, 5),
            ofd(&two, libc::F_WRLCK, 10),
        ]
    }),
    ("a shared mapping, written to and synced", |d| {
        let file = create(&d.join("map"));
        file.set_len(1 << 20).unwrap();
        // SAFETY: the mapping is as long as the file, and gone before anything else is done with it.
        unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                1 << 20,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            assert_ne!(map, libc::MAP_FAILED);
            let bytes = std::slice::from_raw_parts_mut(map.cast::<u8>(), 1 << 20);
            bytes[5000..6000].fill(5);
            let synced = answer(libc::msync(map, 1 << 20, libc::MS_SYNC));
            let mut buffer = [0; 3000];
            file.read_exact_at(&mut buffer, 4000).unwrap();
            file.write_all_at(&[6; 10], 100).unwrap();
            let seen = bytes[100];
            bytes[700_000] = 9;
            drop(file);
            libc::munmap(map, 1 << 20);
            vec![synced, Ok(buffer.iter().map(|byte| i64::from(*byte)).sum()), Ok(seen.into())]
        }
    }),
    ("seeking and reading in pieces", |d| {
        let mut file = create(&d.join("a"));
        let text: Vec<u8> = (0..3_000_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        file.write_all(&text).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        common::uncached(&file);
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert!(read == text);
        vec![answer(file.seek(SeekFrom::End(-5)).unwrap()), Ok(read.len() as i64)]
    }),
];

#[test]
fn every_row_does_on_the_mount_what_it_does_on_the_real_directory() {
    let mounted = Mounted::new();
    let plain = mounted.directory.path().join("plain");
    for (what, row) in ROWS {
        let (served, plain, real) = (mounted.target.join("row"), plain.join("row"), mounted.source.join("row"));
        fs::create_dir_all(&served).unwrap();
        fs::create_dir_all(&plain).unwrap();
        let answers = (row(&served), row(&plain));
        assert_eq!(answers.0, answers.1, "{what}");
        let pictures = (picture(&served), picture(&plain));
        assert_eq!(pictures.0, pictures.1, "{what}");
        // What is seen through the mount is what is there.
        assert_eq!(picture(&real), pictures.1, "{what}");
        fs::remove_dir_all(&served).unwrap();
        fs::remove_dir_all(&plain).unwrap();
    }
}

#[test]
fn every_user_is_held_to_the_modes_and_owns_what_it_makes() {
    let mounted = Mounted::new();
    let plain = mounted.directory.path().join("plain");
    fs::create_dir(&plain).unwrap();
    fs::set_permissions(mounted.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let script =
        "umask 022; echo text > own; mkdir directory; ln -s own link; mkfifo pipe; : > shared/new; mkdir shared/sub
        : > closed/new; cat secret; rm sticky/theirs; echo x >> secret; chmod 777 secret; mv secret stolen; ls";
    let results: Vec<_> = [&mounted.target, &plain]
        .into_iter()
        .map(|directory| {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
            for (name, mode) in [("shared", 0o2777), ("closed", 0o755), ("sticky", 0o1777)] {
                fs::create_dir(directory.join(name)).unwrap();
                fs::set_permissions(directory.join(name), fs::Permissions::from_mode(mode)).unwrap();
            }
            std::os::unix::fs::chown(directory.join("shared"), None, Some(55)).unwrap();
            fs::write(directory.join("sticky/theirs"), "").unwrap();
            fs::write(directory.join("secret"), "secret").unwrap();
            fs::set_permissions(directory.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
            use std::os::unix::process::CommandExt;
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).current_dir(directory).uid(65_534).gid(65_533).env("LC_ALL", "C");
            let output = shell.output().unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            (text(output.stdout), text(output.stderr), picture(directory))
        })
        .collect();
    assert_eq!(results[0], results[1]);
    let own = fs::metadata(mounted.source.join("own")).unwrap();
    assert_eq!((own.uid(), own.gid()), (65_534, 65_533));
    assert_eq!(fs::metadata(mounted.source.join("shared/new")).unwrap().gid(), 55);
    assert!(results[0].1.contains("Permission denied"), "{}", results[0].1);
}

#[test]
fn a_random_course_of_operations_leaves_the_same_behind_as_on_the_real_directory() {
    let mounted = Mounted::new();
    let plain = mounted.directory.path().join("plain");
    fs::create_dir(&plain).unwrap();
    for seed in 1..=20 {
        let directories = [mounted.target.join(seed.to_string()), plain.join(seed.to_string())];
        let answers = directories.each_ref().map(|directory| {
            fs::create_dir(directory).unwrap();
            tree::wander(directory, seed, 500)
        });
        for (step, (served, real)) in answers[0].iter().zip(&answers[1]).enumerate() {
            assert_eq!(served, real, "seed {seed}, step {step}");
        }
        assert_eq!(picture(&directories[0]), picture(&directories[1]), "seed {seed}");
        assert_eq!(picture(&mounted.source.join(seed.to_string())), picture(&directories[1]), "seed {seed}");
    }
}
