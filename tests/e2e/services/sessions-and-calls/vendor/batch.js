export const batch = 'batch';
