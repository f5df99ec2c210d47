package kernelevents

// systemCall is the field of pt_regs that has the number of the system call.
const systemCall = "syscallno"
