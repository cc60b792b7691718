/* A host whose time of day is off and whose disk is slow, for one process that preloads this (LD_PRELOAD).
   The file PLAYHEAD_HOST_FILE holds two 64-bit integers, read at each call: by how many seconds the time of day is off, and
   how many microseconds each write to a file, and each flush, takes longer. Sockets and pipes are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct host { int64_t off_seconds, disk_microseconds; };
static const volatile struct host *host;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PLAYHEAD_HOST_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(struct host), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) host = mapped;
}

/* The function of this name that comes after ours. */
#define NEXT(name) \
    static __typeof__(&name) next; \
    if (next == NULL) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_gettime);
    int result = next(clock, now);
    if (result == 0 && host != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += host->off_seconds;
    return result;
}

static void wait_for_disk(int file) {
    struct stat found;
    if (host == NULL || host->disk_microseconds == 0 || fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) return;
    usleep((useconds_t)host->disk_microseconds);
}

ssize_t write(int file, const void *bytes, size_t size) { NEXT(write); wait_for_disk(file); return next(file, bytes, size); }
ssize_t writev(int file, const struct iovec *parts, int count) { NEXT(writev); wait_for_disk(file); return next(file, parts, count); }
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) { NEXT(pwrite); wait_for_disk(file); return next(file, bytes, size, at); }
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) { NEXT(pwrite64); wait_for_disk(file); return next(file, bytes, size, at); }
int fsync(int file) { NEXT(fsync); wait_for_disk(file); return next(file); }
int fdatasync(int file) { NEXT(fdatasync); wait_for_disk(file); return next(file); }
