# MUST: the kernel's settings and secrets are neither written nor read
import glob, os
control(open('/proc/self/stat').read())
for path in ('/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches', '/proc/sys/kernel/hostname', '/proc/sys/kernel/ns_last_pid', '/proc/sys/fs/mqueue/msg_max', '/proc/sys/kernel/shmmax',
    '/proc/self/uid_map', '/proc/self/gid_map', '/proc/self/setgroups', '/proc/self/attr/exec', '/proc/1/oom_score_adj', '/proc/irq/default_smp_affinity', '/sys/kernel/uevent_helper', '/sys/power/state', '/proc/sys/kernel/randomize_va_space', '/proc/timer_list', '/proc/acpi/wakeup'):
    try:
        with open(path, 'r+') as f: text = f.read(40); f.seek(0); f.write(text or '0'); f.flush()
        pwn(f'wrote {path}')
    except OSError: pass
for path in ('/proc/kcore', '/proc/kmsg', '/dev/mem', '/dev/kmsg', '/sys/kernel/debug', '/sys/firmware', '/etc/shadow', '/boot', '/var/log'):
    try: (os.listdir if os.path.isdir(path) else lambda p: open(p, 'rb').read(1))(path); pwn(f'read {path}')
    except OSError: pass
blocked('kernel files')
