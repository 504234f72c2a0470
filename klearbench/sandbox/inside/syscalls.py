"""The list of system calls that a submitted program may make, as numbers, for two architectures.

Written from the kernel's own headers (asm/unistd_64.h for x86_64, asm-generic/unistd.h for aarch64); a test compares
them with the headers of the machine where these are installed. A name that is absent does not exist there.
"""

from __future__ import annotations


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (item.split("=") for item in text.split())}


X86_64 = _table(
    """
    read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
    rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17 pwrite64=18 readv=19 writev=20
    access=21 pipe=22 select=23 sched_yield=24 mremap=25 msync=26 mincore=27 madvise=28 dup=32 dup2=33 pause=34
    nanosleep=35 getitimer=36 alarm=37 setitimer=38 getpid=39 sendfile=40 sendto=44 recvfrom=45 sendmsg=46
    recvmsg=47 shutdown=48 getsockname=51 getpeername=52 socketpair=53 setsockopt=54 getsockopt=55 clone=56
    exit=60 kill=62 uname=63 fcntl=72 fsync=74 fdatasync=75 truncate=76 ftruncate=77 getdents=78
    getcwd=79 chdir=80 fchdir=81 rename=82 mkdir=83 rmdir=84 creat=85 link=86 unlink=87 symlink=88 readlink=89
    chmod=90 fchmod=91 umask=95 gettimeofday=96 getrlimit=97 getrusage=98 sysinfo=99 times=100 getuid=102
    getgid=104 geteuid=107 getegid=108 getppid=110 getpgrp=111 getgroups=115 getresuid=118 getresgid=120
    getpgid=121 getsid=124 rt_sigpending=127 rt_sigtimedwait=128 rt_sigsuspend=130 sigaltstack=131 utime=132
    statfs=137 fstatfs=138 getpriority=140 sched_getparam=143 sched_getscheduler=145 sched_get_priority_max=146
    sched_get_priority_min=147 sched_rr_get_interval=148 prctl=157 arch_prctl=158 setrlimit=160 gettid=186
    getxattr=191 lgetxattr=192 fgetxattr=193 listxattr=194 llistxattr=195 flistxattr=196 time=201 futex=202
    sched_getaffinity=204 epoll_create=213 getdents64=217 set_tid_address=218 restart_syscall=219 fadvise64=221
    timer_create=222 timer_settime=223 timer_gettime=224 timer_getoverrun=225 timer_delete=226 clock_gettime=228
    clock_getres=229 clock_nanosleep=230 exit_group=231 epoll_wait=232 epoll_ctl=233 tgkill=234 utimes=235
    openat=257 mkdirat=258 futimesat=261 newfstatat=262 unlinkat=263 renameat=264 linkat=265 symlinkat=266
    readlinkat=267 fchmodat=268 faccessat=269 pselect6=270 ppoll=271 set_robust_list=273 sync_file_range=277
    utimensat=280 epoll_pwait=281 timerfd_create=283 wait4=61 waitid=247 pidfd_open=434 unshare=272 setns=308
    mount=165 umount2=166 setresuid=117 setresgid=119 capset=126 eventfd=284 fallocate=285 timerfd_settime=286
    timerfd_gettime=287 signalfd4=289 eventfd2=290 epoll_create1=291 dup3=292 pipe2=293 preadv=295 pwritev=296
    prlimit64=302 getcpu=309 renameat2=316 getrandom=318 membarrier=324 copy_file_range=326 statx=332 rseq=334
    io_uring_setup=425 clone3=435 close_range=436 openat2=437 faccessat2=439 epoll_pwait2=441 futex_waitv=449
    """
)

AARCH64 = _table(
    """
    getxattr=8 lgetxattr=9 fgetxattr=10 listxattr=11 llistxattr=12 flistxattr=13 getcwd=17 eventfd2=19
    epoll_create1=20 epoll_ctl=21 epoll_pwait=22 dup=23 dup3=24 fcntl=25 ioctl=29 mkdirat=34
    unlinkat=35 symlinkat=36 linkat=37 renameat=38 statfs=43 fstatfs=44 truncate=45 ftruncate=46 fallocate=47
    faccessat=48 chdir=49 fchdir=50 fchmod=52 fchmodat=53 openat=56 close=57 pipe2=59 getdents64=61 lseek=62
    read=63 write=64 readv=65 writev=66 pread64=67 pwrite64=68 preadv=69 pwritev=70 sendfile=71 pselect6=72
    ppoll=73 signalfd4=74 readlinkat=78 newfstatat=79 fstat=80 fsync=82 fdatasync=83 sync_file_range=84
    timerfd_create=85 wait4=260 waitid=95 pidfd_open=434 unshare=97 setns=268 mount=40 umount2=39 setresuid=147
    setresgid=149 capset=91 timerfd_settime=86 timerfd_gettime=87 utimensat=88 exit=93 exit_group=94
    set_tid_address=96 futex=98 set_robust_list=99 nanosleep=101 getitimer=102 setitimer=103 timer_create=107
    timer_gettime=108 timer_getoverrun=109 timer_settime=110 timer_delete=111 clock_gettime=113 clock_getres=114
    clock_nanosleep=115 sched_getscheduler=120 sched_getparam=121 sched_getaffinity=123 sched_yield=124
    sched_get_priority_max=125 sched_get_priority_min=126 sched_rr_get_interval=127 restart_syscall=128 kill=129
    tgkill=131 sigaltstack=132 rt_sigsuspend=133 rt_sigaction=134 rt_sigprocmask=135 rt_sigpending=136
    rt_sigtimedwait=137 rt_sigreturn=139 getpriority=141 getresuid=148 getresgid=150 times=153 getpgid=155
    getsid=156 getgroups=158 uname=160 getrlimit=163 setrlimit=164 getrusage=165 umask=166 prctl=167 getcpu=168
    gettimeofday=169 getpid=172 getppid=173 getuid=174 geteuid=175 getgid=176 getegid=177 gettid=178 sysinfo=179
    socketpair=199 getsockname=204 getpeername=205 sendto=206 recvfrom=207 setsockopt=208 getsockopt=209
    shutdown=210 sendmsg=211 recvmsg=212 brk=214 munmap=215 mremap=216 clone=220 mmap=222 fadvise64=223
    mprotect=226 msync=227 mincore=232 madvise=233 prlimit64=261 renameat2=276 getrandom=278 membarrier=283
    copy_file_range=285 statx=291 rseq=293 io_uring_setup=425 clone3=435 close_range=436 openat2=437
    faccessat2=439 epoll_pwait2=441 futex_waitv=449
    """
)

ARGUMENTS_DECIDE = ("clone", "kill", "tgkill", "prlimit64", "prctl", "ioctl", "socketpair", "fcntl", "unshare", "setns")
"""Calls that are allowed for some arguments only; `seccomp.py` says which."""

SPAWNER_ONLY = (
    "wait4",
    "waitid",
    "pidfd_open",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "setresuid",
    "setresgid",
    "capset",
)
"""Calls that the zygote and a submission's process need besides. A test that inherits their filter lacks the
capabilities without which the last seven do nothing, and gets none by `unshare`, which is allowed for PID namespaces
alone."""

CHANGES_FILES = ("chmod", "fchmod", "fchmodat", "utime", "utimes", "futimesat", "utimensat", "truncate")
"""Calls that Landlock does not rule (truncate: before Linux 6.2)."""

PRETEND_ABSENT = ("clone3", "openat2", "io_uring_setup")
"""Calls that fail with ENOSYS, so that the C library falls back to the older one."""
