export const users = 2;
