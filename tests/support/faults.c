/* Preloaded into a program: at a chosen change of a file below a folder, the process is
   killed, or the disk is full from then on.

   Every call of the C library that changes files is a point; SQLite and pyarrow are
   seen like Python itself. `faults_arm` chooses, `faults_seen` counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, FULL };
static char below[PATH_MAX];
static int mode = OFF;
static long chosen = -1, seen = 0;

void faults_arm(const char *folder, int how, long number)
{
    snprintf(below, sizeof below, "%s", folder);
    mode = how;
    chosen = number;
    seen = 0;
}

long faults_seen(void) { return seen; }

static int is_below(const char *path)
{
    char whole[2 * PATH_MAX];
    if (mode == OFF || path == NULL)
        return 0;
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (getcwd(here, sizeof here) == NULL)
            return 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
        path = whole;
    }
    return strncmp(path, below, strlen(below)) == 0;
}

static int is_open_below(int handle)
{
    char link[64], path[PATH_MAX];
    if (mode == OFF)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return 0;
    path[n] = 0;
    return is_below(path);
}

/* Count a point; return whether the call needs room on a disk that is full. */
static int point(int needs_room)
{
    long number = seen++;
    if (mode == KILL && number == chosen)
        kill(getpid(), SIGKILL);
    if (mode == FULL && needs_room && number >= chosen) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITES(name, parameters, arguments)                                            \
    ssize_t name parameters                                                            \
    {                                                                                  \
        if (is_open_below(handle) && point(1))                                         \
            return -1;                                                                 \
        return REAL(name) arguments;                                                   \
    }
WRITES(write, (int handle, const void *data, size_t n), (handle, data, n))
WRITES(writev, (int handle, const struct iovec *parts, int n), (handle, parts, n))
WRITES(pwrite, (int handle, const void *data, size_t n, off_t at), (handle, data, n, at))
WRITES(pwrite64, (int handle, const void *data, size_t n, off64_t at), (handle, data, n, at))

#define FLUSHES(name)                                                                  \
    int name(int handle)                                                               \
    {                                                                                  \
        if (is_open_below(handle) && point(1))                                         \
            return -1;                                                                 \
        return REAL(name)(handle);                                                     \
    }
FLUSHES(fsync)
FLUSHES(fdatasync)

int ftruncate(int handle, off_t n)
{
    if (is_open_below(handle))
        point(0);
    return REAL(ftruncate)(handle, n);
}

int ftruncate64(int handle, off64_t n)
{
    if (is_open_below(handle))
        point(0);
    return REAL(ftruncate64)(handle, n);
}

#define OPENS(name)                                                                    \
    int name(const char *path, int flags, ...)                                         \
    {                                                                                  \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        mode_t rights = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;    \
        va_end(more);                                                                  \
        if (flags & (O_CREAT | O_TRUNC) && is_below(path) && point(flags & O_CREAT))   \
            return -1;                                                                 \
        return REAL(name)(path, flags, rights);                                        \
    }
OPENS(open)
OPENS(open64)

int mkdir(const char *path, mode_t rights)
{
    if (is_below(path) && point(1))
        return -1;
    return REAL(mkdir)(path, rights);
}

#define REMOVES(name)                                                                  \
    int name(const char *path)                                                         \
    {                                                                                  \
        if (is_below(path))                                                            \
            point(0);                                                                  \
        return REAL(name)(path);                                                       \
    }
REMOVES(unlink)
REMOVES(rmdir)

int rename(const char *from, const char *to)
{
    if (is_below(to))
        point(0);
    return REAL(rename)(from, to);
}
