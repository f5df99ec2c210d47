// An assembler file lets Go declare functions without bodies: those of k6.go.
